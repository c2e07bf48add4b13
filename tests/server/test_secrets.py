"""No secret is printed, logged, served or stored where it does not belong.

A real server that logs at the lowest level and a real agent start, enroll, submit and fail in every
way below. Then all that they printed, answered and wrote is searched for every secret.
"""

import base64
import logging
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from tests.fakes import postgres
from tests.fakes.live import running_server
from tests.fakes.outboxes import put
from tests.fakes.ports import free_port
from tests.fakes.results import make_result
from typer.testing import CliRunner

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.cli.main import app as agent_program
from bench_agent.remote.outbox import Outbox
from bench_server.cli.main import main as server_program
from bench_server.settings import Settings, child_environment

ADDRESSES = (
    *("/", "/readyz", "/healthz", "/metrics", "/log", "/docs", "/openapi.json", "/checkpoint"),
    *("/api/v1/log/entries", "/api/v1/results", "/api/v1/export.csv", "/api/v1/nothing"),
    *("/api/v1/leaderboard?workload=nothing", "/api/v1/keys/nothing", "/dumps/"),
)
DAMAGE = ("DROP TABLE aggregate", "UPDATE measurement SET verdicts = 'no JSON'")
Run = Callable[..., str]


class Database:
    """PostgreSQL with roles, where a password is needed: SQLite's addresses hold no secret."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.cluster = postgres.start(port=self.port)
        self.password = f"{secrets.token_hex(16)}/?{secrets.token_hex(4)}"
        (folder / "passwords").mkdir()
        for role in ("migrate", "server"):
            (folder / "passwords" / f"{role}_password").write_text(self.password)
        self.cluster.make_roles(folder / "passwords")
        self.migrate_url, self.url = (
            self._address(f"trainmark_{role}", quote(self.password, safe=""))
            for role in ("migrate", "server")
        )
        password = self.password
        self.wrong = (
            "sqlite:////proc/nothing/here.db",
            self._address("trainmark_nobody", quote(password, safe="")),  # refused
            self.url.replace(f":{self.port}/", f":{free_port()}/"),  # nothing listens
            self.url.replace("psycopg:", "psycopg2:"),
            self.url.replace(f":{self.port}/", ":port/"),
            self._address("trainmark_server", f"a@{password}"),
            self._address("trainmark_server", f"a@b:{password}"),
            self.url.partition("://")[0] + f"://127.0.0.1:{self.port}/none?password={password[:8]}"
            f"{quote(password[8:], safe='')}",
        )

    def _address(self, user: str, password: str) -> str:
        return f"postgresql+psycopg://{user}:{password}@127.0.0.1:{self.port}/trainmark"

    def damage(self) -> None:
        """From now on most requests fail, some with a traceback."""
        with psycopg.connect(self.migrate_url.replace("+psycopg", ""), autocommit=True) as owner:
            for statement in DAMAGE:
                owner.execute(statement)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path)
    yield made
    made.cluster.stop()


@pytest.fixture
def everything(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    caplog.set_level(logging.DEBUG)
    return []


@pytest.fixture
def run(everything: list[tuple[str, str]]) -> Run:
    def ran(program: Any, *arguments: str, code: int = 0, **environment: str) -> str:
        done = CliRunner().invoke(program, arguments, env=environment)
        said = done.output
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            said += "".join(map(repr, (done.exception, done.exception.args)))
        assert done.exit_code == code, (arguments, said)
        everything.append((" ".join(arguments), said))
        return said

    return ran


def key_forms(path: Path) -> dict[str, bytes]:
    key = load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    seed = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return {
        f"{path.name} raw": seed,
        f"{path.name} hex": seed.hex().encode(),
        f"{path.name} base64": base64.b64encode(seed)[:-2],
        f"{path.name} base64url": base64.urlsafe_b64encode(seed)[:-2],
        f"{path.name} PEM": base64.b64encode(der)[20:-2],
    }


def word_forms(name: str, word: str) -> dict[str, bytes]:
    return {
        name: word.encode(),
        f"{name} quoted": quote(word, safe="").encode(),
        f"{name} base64": base64.b64encode(word.encode())[:-4],
        f"{name} hex": word.encode().hex().encode(),
    }


def leaks(forms: dict[str, bytes], seen: list[tuple[str, bytes]]) -> list[tuple[str, str]]:
    return [
        (place, name)
        for place, content in seen
        for name, secret in forms.items()
        if secret.lower() in content.lower()
    ]


@pytest.mark.postgresql
def test_no_secret_is_printed_or_written(
    database: Database,
    tmp_path: Path,
    run: Run,
    everything: list[tuple[str, str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    token = secrets.token_urlsafe(24)
    closed = tmp_path / "secrets"
    keys, agent_home = tmp_path / "server-keys", Home(tmp_path / "agent")
    for name, url in (("server", database.url), ("migrate", database.migrate_url)):
        (closed / name).mkdir(parents=True)
        (closed / name / "BENCH_SERVER_DATABASE_URL").write_text(url)
    (closed / "server" / "BENCH_SERVER_READ_TOKEN").write_text(token)
    server = {
        "BENCH_SERVER_SECRETS_DIR": str(closed / "server"),
        "BENCH_SERVER_KEYS_DIR": str(keys),
        "BENCH_SERVER_DUMPS_DIR": str(tmp_path / "dumps"),
        "BENCH_SERVER_ENROLLMENT": "invite",
    }
    agent = {"BENCH_HOME": str(agent_home.root), "BENCH_SERVER_TOKEN": token}

    run(server_program, "migrate", BENCH_SERVER_SECRETS_DIR=str(closed / "migrate"))
    with running_server("", tmp_path, log_level=logging.DEBUG, **server) as address:
        invite = run(server_program, "create-invite", **server).strip().splitlines()[-1].split()[-1]
        everything.pop()  # it is printed for the operator to pass on
        run(agent_program, "enroll", "--server", address, "--invite", "wrong-code",
            code=1, **agent)  # fmt: skip
        run(agent_program, "enroll", "--server", address, BENCH_INVITE=invite, **agent)
        key = load_or_create_key(agent_home)
        put(Outbox(agent_home.outbox), make_result(key=key), key)
        run(agent_program, "submit", "--server", address, "--yes", **agent)
        run(agent_program, "results", "list", "--server", address, **agent)
        wrong = agent | {"BENCH_SERVER_TOKEN": secrets.token_urlsafe(24)}
        run(agent_program, "results", "list", "--server", address, code=3, **wrong)
        run(agent_program, "submit", "--server", f"http://127.0.0.1:{free_port()}", "--yes",
            **agent)  # fmt: skip
        for arguments in (["keys", "list"], ["backup", str(tmp_path / "backup.db")],
                          ["export", "--daily", str(tmp_path / "dumps")]):  # fmt: skip
            run(server_program, *arguments, **server)
        with httpx.Client(base_url=address) as http:
            bearer = {"Authorization": f"Bearer {token}"}
            listed = http.get("/api/v1/results", headers=bearer).json()["results"]

            def ask() -> None:
                for path in (*ADDRESSES, f"/api/v1/results/{listed[0]['id']}"):
                    for headers in (bearer, {}, {"Authorization": f"Bearer {token}x"}):
                        for accept in ("text/html", "application/json"):
                            # After an unexpected error the server closes the connection.
                            more = {"Accept": accept, "Connection": "close"}
                            answer = http.get(path, headers=headers | more)
                            everything.append((f"headers of {path}", str(answer.headers)))
                            everything.append((path, answer.text))

            ask()
            for path in ("/api/v1/results", "/api/v1/keys", "/api/v1/acts", "/api/v1/challenges"):
                for body in (b"{", b'{"invite":"%s"}' % invite.encode(), b"[]"):
                    kind = {"Content-Type": "application/json"}
                    everything.append((path, http.post(path, content=body, headers=kind).text))
            database.damage()
            ask()
    for url in database.wrong:
        run(server_program, "backup", str(tmp_path / "no.db"), code=2,
            BENCH_SERVER_DATABASE_URL=url)  # fmt: skip
        run(server_program, "migrate", code=2, BENCH_SERVER_DATABASE_URL=url)
    run(server_program, "migrate", code=2, BENCH_SERVER_READ_TOKEN=token[:10])
    settings = Settings(database_url=database.url, read_token=token)
    everything += [("repr", repr(settings)), ("log of this process", caplog.text)]

    log = (tmp_path / "server.log").read_text()
    assert "Traceback" in log
    assert "DEBUG" in log
    assert "DEBUG" in caplog.text
    files = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and not path.is_relative_to(closed) and "passwords" not in path.parts
    ]
    private = {*keys.iterdir(), agent_home.key}
    assert {"backup.db", "server.log"} <= {path.name for path in files}
    forms = word_forms("read token", token) | word_forms("invitation", invite)
    forms |= word_forms("password", database.password)
    for path in private:
        forms |= key_forms(path)
    seen = [(place, text.encode()) for place, text in everything]
    seen += [(str(path), path.read_bytes()) for path in files if path not in private]
    assert leaks(forms, seen) == []
    # The search finds what is there.
    there = [(str(path), path.read_bytes()) for path in (*private, *closed.rglob("BENCH_*"))]
    assert len({place for place, _ in leaks(forms, there)}) >= len(private) + 1


def test_a_secret_from_a_file_is_in_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a process that the server starts; an option is passed on."""
    url = "postgresql+psycopg://trainmark_server:secret@database/trainmark"
    (tmp_path / "BENCH_SERVER_DATABASE_URL").write_text(url)
    monkeypatch.setenv("BENCH_SERVER_SECRETS_DIR", str(tmp_path))
    monkeypatch.delenv("BENCH_SERVER_DATABASE_URL", raising=False)
    assert url not in child_environment(Settings()).values()
    given = child_environment(Settings(database_url="sqlite:///other.db"))
    assert given["BENCH_SERVER_DATABASE_URL"] == "sqlite:///other.db"
