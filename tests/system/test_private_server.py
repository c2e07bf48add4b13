"""A private server, and two agent processes that submit one outbox."""

from collections.abc import Callable

from tests.fakes.outboxes import put_new
from tests.system.conftest import Agent, Server

from bench_agent.base.home import Home

TOKEN = "a-token-of-this-test-only"


def test_an_agent_enrolls_at_a_private_server_and_submits(
    agent: Agent, make_server: Callable[[], Server]
) -> None:
    server = make_server()
    server.environment["BENCH_SERVER_READ_TOKEN"] = TOKEN
    address = server.start()
    outbox = put_new(Home(agent.home), 2)

    closed = agent("submit", "--server", address, "--yes")
    assert closed.code == 3
    assert f"{address} is private: set BENCH_SERVER_TOKEN" in closed.stderr
    wrong = agent("enroll", "--server", address, BENCH_SERVER_TOKEN="not-this-one")
    assert "does not accept the read token" in wrong.stderr

    variables = {"BENCH_SERVER": address, "BENCH_SERVER_TOKEN": TOKEN}
    for command in (("enroll",), ("submit", "--yes"), ("results", "list")):
        done = agent(*command, **variables)
        assert done.code == 0, (command, done.stderr)
    sent = [entry.answer for entry in outbox.sent()]
    assert len(sent) == 2
    looked = agent("verify", f"{address}/results/{(sent[0] or {})['id']}", **variables)
    assert looked.code == 0, looked.stderr
    for path in agent.home.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path
