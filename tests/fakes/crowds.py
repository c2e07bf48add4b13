"""A crowd of fresh owners, and what a result of a set-up is compared with."""

from datetime import datetime

import httpx
from sqlalchemy import select

from bench_server.db.store import Store
from bench_server.projection import outliers
from bench_server.ranking.owners import ESTABLISHED, NEW
from bench_server.ranking.rows import TABLE

from . import results
from .client import bind

# The hardware of the older owners, and one that nobody else has.
BRANDS = ("Intel(R) Core(TM) i7-8700", "Intel(R) Core(TM) i3-8100")
SLUGS = ("intel-core-i7-8700", "intel-core-i3-8100")
TOGETHER = 90
JSON, NDJSON = ({"Content-Type": f"application/{kind}"} for kind in ("json", "x-ndjson"))


def crowd(http: httpx.Client, store: Store, seeds: range, step_ns: int, now: datetime) -> None:
    """Enroll an owner of one network for each seed, who sends one time in three set-ups."""
    lines = []
    for seed in seeds:
        key = results.private_key(seed)
        body = results.enrollment(key)
        http.post("/api/v1/keys", content=body, headers=JSON).raise_for_status()
        for brand, recipe in ((BRANDS[0], "naive"), (BRANDS[0], "tuned"), (BRANDS[1], "naive")):
            result = results.make_result(
                key=key,
                machine=results.make_machine(brand, seed=seed),
                cell=results.make_cell(recipe=recipe),
                step_ns=step_ns,
            )
            lines.append(results.sealed(bind(store, result, now), key))
    for start in range(0, len(lines), TOGETHER):
        body = b"\n".join(lines[start : start + TOGETHER])
        answer = http.post("/api/v1/results", content=body, headers=NDJSON)
        assert answer.text.count('"status":201') == answer.text.count("\n"), answer.text


def bounds(store: Store) -> list[outliers.OtherOwners]:
    with store.reading() as session:
        connection = session.connection()
        hardware = select(TABLE.c.id).where(
            TABLE.c.level == "hardware",
            TABLE.c.recipe == "naive",
            TABLE.c.hardware_slug == SLUGS[0],
        )
        id = str(connection.scalar(hardware))
        places = [outliers.Place(id, "stranger", kind) for kind in (NEW, ESTABLISHED)]
        found = outliers.others(connection, places)
        return [found[place] for place in places]
