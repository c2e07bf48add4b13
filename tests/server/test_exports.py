"""Exports: CSV, JSON lines and Parquet have the same rows as the JSON answer."""

import csv
import io
import json
from datetime import datetime
from typing import Any

from pyarrow import parquet
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.catalogue.matrix import Device

M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)


def rows(post: Poster, address: str, form: str) -> list[dict[str, Any]]:
    path, _, query = address.partition("?")
    answer = post.http.get(f"/api/v1{path}.{form}?{query}")
    assert answer.status_code == 200, answer.text
    name = path.rsplit("/", 1)[-1].replace("export", "results")
    assert f'filename="{name}.{form}"' in answer.headers["content-disposition"]
    if form == "csv":
        return list(csv.DictReader(io.StringIO(answer.text)))
    if form == "jsonl":
        return [json.loads(line) for line in answer.text.splitlines()]
    rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(answer.content)).to_pylist()
    return rows


def as_text(row: dict[str, Any]) -> dict[str, str]:
    return {
        k: "" if v is None else str(v).lower() if isinstance(v, bool) else str(v)
        for k, v in row.items()
    }


COUNTS = {
    "/export?": 7,
    "/export?ranked=true&device=metal": 3,
    "/leaderboard?workload=mnist-cnn": 2,
    "/leaderboard?group=machine": 2,
    "/compare?ids=intel-core-i7-8700,apple-m2-max-30-core-gpu&price.intel-core-i7-8700=300": 2,
    "/export?workload=fashion-lstm": 0,
}


def test_three_formats_hold_the_same_and_an_export_is_the_list(post: Poster) -> None:
    for number in range(3):
        post.made(step_ns=1_000_000 + number)
        post.made(cell=results.make_cell(device=Device(kind="metal")), machine=M2)
    post(results.make_failure())
    for address, count in COUNTS.items():
        lines, table, columns = (rows(post, address, form) for form in ("jsonl", "csv", "parquet"))
        assert len(lines) == count
        assert table == [as_text(line) for line in lines]
        plain = [
            {k: v.isoformat() if isinstance(v, datetime) else v for k, v in row.items()}
            for row in columns
        ]
        assert plain == lines
    listed = post.http.get("/api/v1/results").json()["results"]
    for exported, row in zip(rows(post, "/export?", "jsonl"), listed, strict=True):
        times = {
            name: exported[name].replace("+00:00", "Z") for name in ("received_at", "started_at")
        }
        assert exported | times | {"verdicts": json.loads(exported["verdicts"])} == row


def test_a_name_is_no_formula(post: Poster) -> None:
    post.made(machine=results.make_machine("=HYPERLINK(1)", seed=5))
    assert rows(post, "/export?", "csv")[0]["hardware"].startswith("'=HYPERLINK")
    assert rows(post, "/export?", "jsonl")[0]["hardware"].startswith("=HYPERLINK")


def test_what_cannot_be_exported(post: Poster) -> None:
    for address in (
        *("export.xlsx", "export.csv?colour=red", "leaderboard.csv?workload=nothing"),
        *("leaderboard.csv?workload=mnist-cnn&cursor=x", "compare.csv?ids=a,b"),
    ):
        answer = post.http.get(f"/api/v1/{address}")
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
