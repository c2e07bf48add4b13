"""Every fenced block of docs/operating.md works as printed, after the blocks before it.

The blocks run as root in a mount namespace of their own, so /etc, /opt, /run and /var/lib of this
machine stay as they are. PostgreSQL is real, with PgBouncer in transaction mode in front of it.
Its superuser cannot read the secrets at first. systemd, docker, pip and the engines of a fleet are
stand-ins, which refuse what the real ones refuse.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from tests.evidence import pgbouncer
from tests.fakes import postgres
from tests.fakes.ports import free_port

from bench_server import price_list

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
STAND_INS = ROOT / "tests" / "fakes" / "stand_ins"
TEXT = (ROOT / "docs" / "operating.md").read_text()
# What each block begins with, in the order of the page. A block of another kind fails.
KINDS = (
    ("commands", "bench-server migrate"),
    ("systemd", "echo BENCH_SERVER_ORIGIN"),
    ("drop-in", "[Service]"),
    ("postgresql", "TRAINMARK_DATABASE="),
    ("backup", "bench-server backup"),
    ("restore", "mkdir -m 700 server-keys"),
    ("containers", "docker compose run"),
    ("prices", "currency ="),
    ("fleet", "bench-agent fleet"),
)
WRITTEN = re.findall(r"^```\w*\n(.*?)^```$", TEXT, re.M | re.S)
BLOCKS = {kind: block for (kind, _), block in zip(KINDS, WRITTEN, strict=False)}
# Until Ctrl-C: it answers under the log's name, and ends without an error.
BENCH_SERVER = f"""#!/bin/bash
[ "$1" = serve ] || exec {BIN}/bench-server "$@"
coproc {BIN}/bench-server "$@" --port 0
while read -r said <&"${{COPROC[0]}}"; do case $said in listening*) break;; esac; done
{BIN}/python - "${{said#listening on }}" <<'END'
import sys, urllib.request
for path in ("/readyz", "/checkpoint"):
    print(urllib.request.urlopen(sys.argv[1] + path, timeout=30).read().decode())
END
answered=$?
kill -INT $COPROC_PID
wait $COPROC_PID
[ "$answered $?" = "0 130" ]
"""
PIP = f"""#!/bin/bash -e
[ "$1" = install ]; shift
for word; do case $word in
  --no-deps|-e|-r) ;;
  --require-hashes) hashed=yes ;;
  locks/*.txt) [ "$hashed" ] && grep -q -- --hash=sha256: "$word" ;;
  ./*) test -f "$word/pyproject.toml"
    for program in {BIN}/bench-*; do ln -sf $program "$(dirname "$0")/_installed"; done
    [ "$0" != /opt/trainmark/bin/pip ] || cp {BIN}/bench-server /opt/trainmark/bin/ ;;
  *) echo "pip: no such option: $word" >&2; exit 2 ;;
esac; done
"""
PYTHON = f"""#!/bin/bash -e
[ "$1 $2" = "-m venv" ] || exec {BIN}/python "$@"
mkdir -p "$3/bin"; cp "$(dirname "$0")/pip" "$3/bin/pip"
"""
# Another user runs it first, which fails and changes nothing.
PSQL = """#!/bin/bash
setpriv --reuid=USER --clear-groups PSQL "$@" 2> refused && exit 1
grep -q "let this user read it" refused || { cat refused >&2; exit 1; }
exec PSQL "$@"
"""
# What a unit's user has to pass to the program, such as root's home.
CLOSED = {
    str(folder)
    for place in (Path(sys.base_prefix), BIN)
    for folder in place.parents
    if not folder.stat().st_mode & 0o001
}
NAMESPACE = f"""set -e
for folder in /etc /opt /run /var/lib {" ".join(CLOSED)}; do
  mkdir -p upper$folder work$folder
  layers="lowerdir=$folder,upperdir=$PWD/upper$folder,workdir=$PWD/work$folder"
  mount -t overlay overlay -o "$layers" $folder
done
[ -z "{" ".join(CLOSED)}" ] || chmod a+rx {" ".join(CLOSED)}
"""


def test_every_block_is_of_a_known_kind() -> None:
    begins = [block.split("\n", 1)[0] for block in WRITTEN]
    assert len(begins) == len(KINDS), begins
    for (_, expected), begin in zip(KINDS, begins, strict=True):
        assert begin.startswith(expected)


def test_the_list_of_prices_is_read(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(BLOCKS["prices"])
    read = price_list.read(tmp_path / "prices.toml")
    assert read.currency == tomllib.loads(BLOCKS["prices"])["currency"]


@pytest.mark.process
@pytest.mark.parametrize("where", list(itertools.product((True, False), repeat=3)))
def test_administration_gets_a_terminal_only_from_one(
    tmp_path: Path, where: tuple[bool, ...]
) -> None:
    for name, line in (("systemctl", ""), ("systemd-run", f'echo "$*" > {tmp_path}/words')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    pairs = os.openpty(), os.pipe()
    files = [pairs[0][1] if is_terminal else pairs[1][0] for is_terminal in where]
    words = ["sh", str(ROOT / "deploy" / "trainmark-admin"), "create-invite"]
    search = f"{tmp_path}:{os.environ['PATH']}"
    stdin, stdout, stderr = files
    try:
        subprocess.run(
            words, stdin=stdin, stdout=stdout, stderr=stderr, env={"PATH": search}, check=True
        )
    finally:
        for number in (number for pair in pairs for number in pair):
            os.close(number)
    given = set((tmp_path / "words").read_text().split())
    assert given & {"--pty", "--pipe"} == {"--pty" if all(where) else "--pipe"}


class Machine:
    """A shell of root with stand-ins first on its PATH, in a folder with the repository's files."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder / "checkout"
        self.folder.mkdir()
        for name in ("shared", "server", "locks", "docker-compose.yml"):
            (self.folder / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "deploy", self.folder / "deploy", ignore=lambda *_: {"secrets"})
        self.programs = folder / "programs"
        self.programs.mkdir()
        for name, text in (("bench-server", BENCH_SERVER), ("pip", PIP), ("python3", PYTHON)):
            self.add(name, text)
        for name in ("systemctl", "systemd-run"):
            self.add(name, f'#!/bin/sh\nexec {sys.executable} {STAND_INS}/systemd.py {name} "$@"\n')
        self.add("docker", f'#!/bin/sh\nexec {sys.executable} {STAND_INS}/docker.py "$@"\n')
        kept = {name: os.environ[name] for name in ("LANG", "PYTHONPATH") if name in os.environ}
        self.environment = kept | environment | {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
        }  # fmt: skip

    def add(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def run(self, *blocks: str) -> str:
        """Run blocks in one shell; the first line that fails is the end."""
        script = "\n".join(("set -eo pipefail; shopt -s expand_aliases", *blocks))
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-c", f'{NAMESPACE}cd checkout\nexec bash -c "$SCRIPT"'],
            cwd=self.folder.parent, env=self.environment | {"SCRIPT": script},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def machine_folder() -> Iterator[Path]:
    """A folder in memory, so that its overlays need no support of the file system below; others may
    enter it, as ``postgres`` does."""
    if os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("systemd-analyze")):
        pytest.skip("root, unshare and systemd-analyze are needed to run the blocks")
    folder = Path(tempfile.mkdtemp(prefix="trainmark-operating-"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=False).returncode == 0
    try:
        if not mounted:
            pytest.skip("this root may not mount, so the blocks cannot run apart")
        folder.chmod(0o755)
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


@pytest.mark.long
@pytest.mark.only_on("linux")
def test_a_server_of_postgresql_and_its_restore(machine_folder: Path) -> None:
    cluster = postgres.start(port=free_port())
    port = free_port()
    try:
        with pgbouncer.running(cluster, loopback_port=port):
            there = {"PGHOST": str(cluster.folder), "PGUSER": cluster.user}
            machine = Machine(machine_folder, PGPORT=str(port))
            psql = " ".join(f"{name}={value}" for name, value in there.items())
            user = str(postgres.as_user()["user"])
            real = f"env {psql} PGPORT={cluster.port} {shutil.which('psql')}"
            machine.add("psql", PSQL.replace("USER", user).replace("PSQL", real))
            state = "/etc/systemd/system/trainmark.service.d"
            drop_in = (
                f"mkdir -p /etc/trainmark {state}",
                "install -m 600 secrets/server_url /etc/trainmark/server_url",
                f"cat > {state}/postgresql.conf <<'END'\n{BLOCKS['drop-in']}END",
                f"printf '[Service]\\nEnvironment=PGPORT={port}\\n' > {state}/test.conf",
                "systemd-analyze verify --man=no /etc/systemd/system/trainmark.service",
                "cp $XDG_DATA_HOME/trainmark/server-keys/* /var/lib/trainmark/server-keys/",
                "chown trainmark /var/lib/trainmark/server-keys/*",
                "/opt/trainmark/bin/trainmark-admin create-invite --owner 'of PostgreSQL'",
            )
            said = machine.run(
                BLOCKS["commands"],
                BLOCKS["systemd"],
                "/opt/trainmark/bin/trainmark-admin keys list",
                BLOCKS["postgresql"],
                *drop_in,
                BLOCKS["backup"],
            )
            assert "trainmark.localhost\n" in said
            assert "trainmark.example\n" in said
            tables = "SELECT count(*) FROM pg_tables WHERE tableowner = 'trainmark_migrate'"
            assert counted(cluster, tables) > 10
            assert counted(cluster, "SELECT count(*) FROM invite") == 1
    finally:
        cluster.stop()
    copied = machine_folder / "copied"
    copied.mkdir()
    shutil.move(machine.folder / "FILE", copied / "backup-2026-11-24.db")
    shutil.move(machine.folder / "keys.tar", copied)
    other = machine_folder / "other"
    other.mkdir()
    restored = Machine(other)
    shutil.copytree(copied, restored.folder, dirs_exist_ok=True)
    assert "trainmark.example\n" in restored.run(BLOCKS["restore"])
    third = machine_folder / "third"
    third.mkdir()
    site = Machine(third)
    shutil.copytree(copied, site.folder / "deploy" / "restore")
    site.run(
        "deploy/secrets.sh trainmark.example; echo TRAINMARK_NAME=trainmark.example >> .env",
        BLOCKS["containers"],
    )


def counted(cluster: postgres.Cluster, statement: str) -> int:
    import psycopg

    address = f"host={cluster.folder} port={cluster.port} user={cluster.user} dbname=trainmark"
    with psycopg.connect(address) as connection:
        row = connection.execute(statement).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(row[0])


# Each stand-in checks the file that its engine is given.
ENGINES = {
    "sbatch": 'bash -n "$1" && grep -q "^#SBATCH --nodes=4" "$1"',
    "kubectl": '[ "$1 $2" = "create --filename" ] && grep -q "^  generateName:" "$3"',
    "ansible-playbook": '[ "$1" = --inventory ] && test -f "$2" && grep -q "hosts:" "$3"',
    "sky": '[ "$1 $2" = "launch --down" ] && grep -q "^resources:" "$3"',
}


def test_a_fleet_is_started(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in ENGINES.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "HOSTS").write_text("one\n")
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", BLOCKS["fleet"]], cwd=tmp_path, env=environment, check=True)
    for path in tmp_path.glob("*.yaml"):
        assert list(yaml.safe_load_all(path.read_text()))
