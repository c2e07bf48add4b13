"""The client against a scripted server: enrolling, times, addresses, the wait for a board."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.fakes.results import key_id, private_key

from bench_agent.base.errors import ServerUnreachable, UsageProblem
from bench_agent.remote.client import Client, ServerRefused, utc_text
from bench_agent.remote.rank import MachineRank, in_words, machine_rank, next_to
from bench_protocol.payload import statement
from bench_protocol.signing import envelope

Handler = Callable[[httpx.Request], httpx.Response]
KEY = private_key()


def client(handler: Handler) -> Client:
    return Client("http://bench.test/", KEY, transport=httpx.MockTransport(handler))


def test_enrollment_proves_possession_and_does_not_sign_the_invitation() -> None:
    bodies: list[bytes] = []

    def server(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(201, json={"key_id": key_id(KEY)})

    client(server).enroll('my "code"')
    body = json.loads(bodies[0])
    assert body["invite"] == 'my "code"'
    opened = envelope.read(json.dumps(body["envelope"]).encode())
    _, public_key = statement.parse_key_event(opened.payload)
    assert b"code" not in opened.payload
    payload = envelope.open_envelope(
        opened, statement.KEY_EVENT_PAYLOAD_TYPE, lambda identifier: public_key
    )
    assert payload == opened.payload


def test_nobody_at_an_address_is_unreachable() -> None:
    nobody = Client("http://127.0.0.1:1", KEY)
    with pytest.raises(ServerUnreachable, match="does not answer: Connection refused$"):
        nobody.knock()


@pytest.mark.parametrize("address", ["http://[", "nonsense", "ftp://host", "127.0.0.1:80", ""])
def test_what_is_no_address_is_wrong_usage(address: str) -> None:
    with pytest.raises(UsageProblem, match="is not the address of a server"):
        Client(address, KEY)


def test_times_are_written_in_utc_with_microseconds() -> None:
    moment = datetime(2026, 11, 21, 3, 42, 0, 5, tzinfo=UTC)
    assert utc_text(moment) == "2026-11-21T03:42:00.000005Z"


def place(
    workload: str, rank: int | None, ranked: int, of_median: float = 1.0, machines: int = 1
) -> dict[str, Any]:
    told = {"workload": workload, "rank": rank, "ranked": ranked}
    return told | {"of_median": of_median, "machines": machines}


SLOWER = {"in_ranked_setup": False, "of_ranked": 1 / 3.2, "framework": "mlx", "recipe": "naive"}


def test_a_result_on_no_board_gives_no_rank() -> None:
    asked: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, json={"id": "r1", "status": "pending", "trust_level": None})

    assert machine_rank(client(server), "r1") is None
    assert asked == ["http://bench.test/api/v1/results/r1?wait=5"]


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([], None),
        ([place("mnist-cnn", None, 47)], None),
        (
            [place("x", None, 47), place("mnist-cnn", 15, 47, 1.0189, 5), place("y", 1, 47)],
            "15th of 47 on mnist-cnn; this machine is 1.019 times as fast as the median one",
        ),
        ([place("mnist-cnn", 1, 3, 1.0, 1)], "1st of 3 on mnist-cnn"),
        (
            [place("mnist-cnn", 1, 2, 1.0, 1) | {"alone": True}],
            "in the only machine measured on mnist-cnn here",
        ),
        (
            [place("mnist-cnn", 15, 47, 0.8, 5)],
            "15th of 47 on mnist-cnn; this machine is 20 % slower than the median one",
        ),
        (
            [place("mnist-cnn", 1, 3, 1.0, 1) | SLOWER],
            "1st of 3 on mnist-cnn; this machine, with mlx naive, is 0.312 times as fast as the "
            "ranked set-up",
        ),
        (
            [place("mnist-cnn", 1, 3, 1.0, 1) | SLOWER | {"of_ranked": None}],
            "1st of 3 on mnist-cnn; this machine was not measured in the way that is ranked",
        ),
    ],
)
def test_where_a_machine_stands(places: Any, words: str | None) -> None:
    def server(request: httpx.Request) -> httpx.Response:
        if "results" in request.url.path:
            return httpx.Response(200, json={"status": "measured", "machine_id": "m1"})
        return httpx.Response(200, json={"places": places})

    assert machine_rank(client(server), "r1") == MachineRank("http://bench.test/machines/m1", words)


@pytest.mark.parametrize(
    "read",
    [
        lambda client: machine_rank(client, "r1"),
        lambda client: next_to(client, "m1", ["mnist-cnn"]),
        lambda client: client.result_on_board("r1"),
    ],
)
@pytest.mark.parametrize(
    "document", [{}, {"name": "registry", "status": [], "results": [], "places": "none"}]
)
def test_another_product_does_not_answer_that_there_is_nothing(
    read: Callable[[Client], Any], document: dict[str, Any]
) -> None:
    with pytest.raises(ServerUnreachable, match="bench.test is not a Trainmark server"):
        read(client(lambda request: httpx.Response(200, json=document)))


@pytest.mark.parametrize(
    ("document", "error", "says"),
    [
        ({"code": "gone", "detail": "no", "hint": [1]}, ServerRefused, "refused: no$"),
        ({"code": "gone", "detail": "no", "hint": "ask"}, ServerRefused, r"refused: no \(ask\)$"),
        ({"code": "gone", "detail": ""}, ServerRefused, "refused: it gives no reason$"),
        ({"code": 5, "detail": {"a": 1}, "hint": [1]}, ServerUnreachable, "answered 409"),
        ({"code": [], "detail": None}, ServerUnreachable, "answered 409"),
    ],
)
def test_a_refusal_names_the_server_and_says_texts_only(
    document: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=f"^http://bench.test {says}"):
        client(lambda request: httpx.Response(409, json=document)).read("/api/v1/results/r1")


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (["fashion-mlp"], "3rd of 5 on fashion-mlp"),
        (["fashion-lstm", "fashion-mlp"], "3rd of 5 on fashion-mlp"),
        (["fashion-lstm"], "15th of 47 on mnist-cnn"),
        ([], "15th of 47 on mnist-cnn"),
    ],
)
def test_the_rank_is_on_a_workload_of_the_run_if_one_is_ranked(
    measured: list[str], words: str
) -> None:
    places = [place("mnist-cnn", 15, 47), place("fashion-lstm", None, 9)]
    places += [place("fashion-mlp", 3, 5), place("fashion-cnn", 1, 5)]
    assert in_words(places, measured) == words
