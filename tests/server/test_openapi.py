"""The OpenAPI document: every field has a meaning, errors are the real ones, ids fit clients."""

import html
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster

from bench_server.answers.board_filters import BoardFilters
from bench_server.answers.filters import ResultPageFilters
from bench_server.answers.types.leaderboard import BoardRow
from bench_server.answers.types.results import ResultAnswer
from bench_server.web import openapi

pytestmark = pytest.mark.sqlite
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


@pytest.fixture
def document(application: FastAPI) -> dict[str, Any]:
    return application.openapi()


def properties(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        for name, schema in (node.get("properties") or {}).items():
            if isinstance(schema, dict):
                yield f"{place}.{name}", schema
        for name, part in node.items():
            yield from properties(part, f"{place}/{name}")
    elif isinstance(node, list):
        for number, part in enumerate(node):
            yield from properties(part, f"{place}/{number}")


def test_a_filter_has_the_name_of_the_field_that_it_filters() -> None:
    """What has no such field chooses hardware, boards, an order or a page."""
    page, of_hardware = {"sort", "limit", "cursor"}, {"hardware", "q", "family", "owner"}
    further = {"where", "verdicts", "received_after"}
    for filters, row, others in (
        (ResultPageFilters, ResultAnswer, further),
        (BoardFilters, BoardRow, {"where", "size", "group", "rank_by", "baseline"}),
    ):
        unlike = filters.model_fields.keys() - row.__dataclass_fields__.keys()
        assert unlike <= page | of_hardware | others, filters


def test_every_field_of_an_answer_has_a_meaning(document: dict[str, Any]) -> None:
    answers = {path: one["responses"] for path, _, one in openapi.operations(document)}
    every = list(properties({"schemas": document["components"]["schemas"], **answers}))
    assert len(every) > 400
    missing = [place for place, schema in every if len(schema.get("description", "")) < 5]
    assert missing == []


def test_times_and_energies_name_their_unit(document: dict[str, Any]) -> None:
    units = {"_seconds": "seconds", "_bytes": "bytes", "joules": "joule", "per_second": "second"}
    for place, schema in properties(document["components"]["schemas"]):
        for part, unit in units.items():
            if part in place.rpartition(".")[2]:
                assert unit in schema["description"], place
        assert not place.endswith("_ns"), f"{place}: answers are in seconds"


def test_every_meaning_has_a_field(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    fields = {name: set(schema.get("properties", ())) for name, schema in schemas.items()}
    everywhere = set().union(*fields.values())
    for name, entries in openapi.meanings().items():
        known = everywhere if name == "any" else fields.get(name, set())
        assert set(entries) <= known, f"[{name}] names fields that no answer has"


def test_errors_are_problem_documents_by_name(document: dict[str, Any], post: Poster) -> None:
    schemas = document["components"]["schemas"]
    assert not [name for name in schemas if "ValidationError" in name]
    for path, method, operation in openapi.operations(document):
        errors = {s: a for s, a in operation["responses"].items() if s >= "400"}
        assert all(answer["content"] == PROBLEM for answer in errors.values()), path
        if not path.startswith(("/healthz", "/readyz")):
            assert {"429", "500", "503"} <= set(errors), path
            assert ("401" in errors) == (method == "get"), path
    sent = post.http.get("/api/v1/leaderboard?nonsense=1").json()
    assert sent.keys() == schemas["Problem"]["properties"].keys()


def test_operation_ids_fit_generated_clients(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in openapi.operations(document)]
    assert len(ids) == len(set(ids)) > 30
    for identity in ids:
        assert re.fullmatch(r"[a-z]+(_[a-z]+){1,4}", identity), identity
        assert len(identity) <= 30, identity
    used = {tag for _, _, operation in openapi.operations(document) for tag in operation["tags"]}
    assert used == {tag["name"] for tag in document["tags"]}


def test_results_without_verdicts(post: Poster) -> None:
    post.made()
    whole, short = (
        post.http.get("/api/v1/results", params=ask) for ask in ({}, {"verdicts": "false"})
    )
    (row,), (without,) = whole.json()["results"], short.json()["results"]
    assert row["verdicts"]
    assert without == row | {"verdicts": None}
    assert len(short.content) < 0.4 * len(whole.content)


def test_the_page_of_the_api_begins_with_four_recipes(
    post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each runs, the lines of Python with a stand-in for pandas."""
    begin = recipes_of(post)
    assert len(begin) == 4
    assert "SLUG,SLUG" in begin[2]
    assert "rank" not in "".join(begin)
    for seed, name in enumerate(("Intel Core i7-8700", "Intel Core i7-9700"), 1):
        post.made(machine=results.make_machine(name, seed=seed))
    board, answer, table, pair, whole = recipes_of(post)
    assert '"hardware": "Intel Core i7-' in answer
    for command in (board, pair):
        (address,) = re.findall(r"^curl 'http://testserver(/api/[^']+)'$", command)
        found = post.http.get(address)
        assert found.status_code == 200
        assert "Intel Core i7-" in found.text
    read: list[str] = []
    pandas = SimpleNamespace(read_csv=read.append, read_parquet=read.append)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pandas", pandas)
        exec("\n".join((table, whole)), {})
    csv, parquet = (post.http.get(address.removeprefix("http://testserver")) for address in read)
    assert "Intel Core i7-8700" in csv.text
    assert parquet.content.startswith(b"PAR1")


def recipes_of(post: Poster) -> list[str]:
    begin = post.http.get("/docs").text.partition('id="begin"')[2].partition("</section>")[0]
    found = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", begin, re.DOTALL)
    return list(map(html.unescape, found))


def test_a_shared_parameter_is_written_once_and_each_type_has_a_page(http: TestClient) -> None:
    page = http.get("/docs").text
    assert page.count("name or slug, the last or its beginning") == 1
    anchors = set(re.findall(r'id="(parameter-\d+)"', page))
    assert anchors == set(re.findall(r'href="#(parameter-\d+)"', page))
    document = http.get("/openapi.json").json()
    for name, schema in document["components"]["schemas"].items():
        fields = http.get(f"/docs/{name}").text
        assert all(f"<code>{field}</code>" in fields for field in schema.get("properties", {}))
    answered = set(re.findall(r'href="/docs/(\w+)"', page))
    assert "LeaderboardAnswer" in answered <= document["components"]["schemas"].keys()
    wrong = http.get("/docs/LeaderbordAnswer", headers={"accept": "text/html"})
    assert (wrong.status_code, "/docs/LeaderboardAnswer" in wrong.text) == (404, True)


def test_llms_txt_links_what_there_is(http: TestClient) -> None:
    answer = http.get("/llms.txt")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith("# Trainmark\n\n> ")
    links = re.findall(r"\]\(http://testserver(/[^)]*)\)", answer.text)
    assert len(links) >= 10
    for link in links:
        assert http.get(link).status_code == (422 if link.endswith("/compare") else 200), link
