"""Ten questions that a buyer would ask, answered with the API alone.

    python docs/ten_questions.py http://127.0.0.1:8000 [--workload NAME] [--budget 3000]

Only the standard library is used. Every answer names the hardware and where its figure comes from.
"""

import argparse
import csv
import io
import json
import sys
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen


class Api:
    """The server's read API."""

    def __init__(self, address: str) -> None:
        self.address = f"{address.rstrip('/')}/api/v1"

    def text(self, path: str, **query: Any) -> str:
        address = f"{self.address}{path}?{urlencode(query, doseq=True)}"
        with urlopen(address, timeout=30) as answer:
            found: str = answer.read().decode()
            return found

    def get(self, path: str, **query: Any) -> Any:
        return json.loads(self.text(path, **query))

    def board(self, workload: str, **query: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.get("/leaderboard", workload=workload, **query)["rows"]
        return rows


def measured(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if not row["published"]]


def fastest(api: Api, workload: str) -> str:
    """1. Which hardware trains this workload fastest?"""
    row = measured(api.board(workload))[0]
    return f"{row['hardware']}: {row['samples_per_second']:,.0f} samples/s"


def against_old_desktop(api: Api, workload: str) -> str:
    """2. How much faster is that than an ordinary desktop processor?"""
    answer = api.get("/leaderboard", workload=workload)
    row = measured(answer["rows"])[0]
    baseline = answer["baselines"][0]["hardware"] if answer["baselines"] else None
    if row["speed_up"] is None:
        return "no baseline yet: it needs two owners"
    return f"{row['hardware']} is {row['speed_up']:.3g} times as fast as {baseline}"


def is_it_certain(api: Api, workload: str) -> str:
    """3. Is the first really faster than the second, and how sure is that?"""
    first, second = measured(api.board(workload))[:2]
    ids = f"{second['hardware_slug']},{first['hardware_slug']}"
    rows = api.get("/compare", ids=ids)["rows"]
    verdicts = {
        row["cells"][1]["verdict"] for row in rows if row["common"] and row["workload"] == workload
    }
    return "; ".join(sorted(verdicts)) or "they share no cell, so nothing can be said"


def per_money(api: Api, workload: str, budget: float) -> str:
    """4. Which of the two gives more speed for its price?"""
    rows = measured(api.board(workload))[:2]
    slugs = [row["hardware_slug"] for row in rows]
    prices = {f"price.{slug}": budget * (2 - place) for place, slug in enumerate(slugs)}
    answer = api.get("/compare", ids=",".join(slugs), **prices)
    cells = [row["cells"] for row in answer["rows"] if row["workload"] == workload]
    best = max(
        (cell["samples_per_second_per_price"], thing["name"], thing["price"]["amount"])
        for row in cells
        for cell, thing in zip(row, answer["things"], strict=True)
        if cell
    )
    return f"{best[1]} at {best[2]:,.0f}: {best[0]:.3g} samples/s for each unit of money"


def least_energy(api: Api, workload: str) -> str:
    """5. Which needs the least energy for an epoch?"""
    rows = api.board(workload, rank_by="energy")
    if not rows:
        return "nobody has measured energy on this workload yet"
    row = rows[0]
    return f"{row['hardware']}: {row['joules_per_epoch']:,.0f} J ({row['energy_scope']})"


def framework(api: Api, workload: str) -> str:
    """6. Which framework and recipe should I use on the fastest hardware?"""
    row = measured(api.board(workload, include="others"))[0]
    others = [f"{o['framework']} {o['recipe']}" for o in row["others"]]
    beaten = f", ahead of {', '.join(others)}" if others else ""
    return f"{row['framework']} {row['recipe']} on {row['hardware']}{beaten}"


def is_a_gpu_worth_it(api: Api, workload: str) -> str:
    """7. Does this workload need a GPU at all?"""
    rows = measured(api.board(workload))
    gpus = [row for row in rows if row["device"] != "cpu"]
    cpus = [row for row in rows if row["device"] == "cpu"]
    if not gpus or not cpus:
        return "only one kind was measured"
    ratio = gpus[0]["samples_per_second"] / cpus[0]["samples_per_second"]
    return f"{gpus[0]['hardware']} is {ratio:.3g} times as fast as {cpus[0]['hardware']}"


def batch_size(api: Api, workload: str) -> str:
    """8. At which batch size is the fastest hardware at its best?"""
    slug = measured(api.board(workload))[0]["hardware_slug"]
    rows = api.board(workload, hardware=slug, batch_size="any", group="setup")
    return f"batch {rows[0]['batch_size']:,}: {rows[0]['samples_per_second']:,.0f} samples/s"


def can_i_believe_it(api: Api, workload: str) -> str:
    """9. Who measured it, how often, and may I believe it?"""
    row = measured(api.board(workload))[0]
    return (
        f"{row['runs']} runs on {row['machines']} machines of {row['owners']} owners, trust level "
        f"{row['trust_level']}, backed by {row['backing']}; signed bytes: "
        f"/results/{row['result_id']}/envelope"
    )


def does_it_get_slower(api: Api, workload: str) -> str:
    """10. Has a machine of that kind changed its speed, and with what?"""
    row = measured(api.board(workload, group="machine"))[0]
    axes = ("framework", "device", "recipe", "batch_size", "data", "timing")
    cell = {name: row[name] for name in axes}
    path = f"/machines/{row['machine_id']}/history"
    found = api.get(path, workload=workload, precision=row["precision"], **cell)
    lines = [
        f"{change['speed_up']:.3g} times as fast from {change['started_at'][:10]} on: "
        + ", ".join(f"{one['name']} {one['before']} -> {one['after']}" for one in change["changed"])
        for change in found["changes"]
    ]
    return "; ".join(lines) or f"no change in {len(found['points'])} results"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--workload", default="mnist-cnn")
    parser.add_argument("--budget", type=float, default=3000)
    asked = parser.parse_args()
    api = Api(asked.address)
    try:
        ranked = {row["hardware_slug"] for row in measured(api.board(asked.workload))}
    except HTTPError as error:
        problem = json.loads(error.read())
        print(f"{problem['detail']}: {problem['hint']}", file=sys.stderr)
        return 1
    except URLError as error:
        print(f"{asked.address} does not answer: {error.reason}", file=sys.stderr)
        return 1
    if len(ranked) < 2:
        print(f"{len(ranked)} hardware on {asked.workload}: these need two", file=sys.stderr)
        return 1
    for ask in (
        fastest,
        against_old_desktop,
        is_it_certain,
        lambda a, w: per_money(a, w, asked.budget),
        least_energy,
        framework,
        is_a_gpu_worth_it,
        batch_size,
        can_i_believe_it,
        does_it_get_slower,
    ):
        question = (ask.__doc__ or per_money.__doc__ or "").strip()
        print(f"{question}\n   {ask(api, asked.workload)}")
    rows = csv.DictReader(io.StringIO(api.text("/leaderboard.csv", workload=asked.workload)))
    print(f"\nThe board as CSV has {len(list(rows))} rows: {api.address}/leaderboard.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
