"""Is this checkout fit for a release? ``make release-check`` builds the three distributions and
installs them as a stranger would, each alone in an empty environment.

Each step prints one line. The first that fails says why and ends with status 1.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.parser import HeaderParser
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = {"shared": "bench_protocol", "agent": "bench_agent", "server": "bench_server"}
FRAMEWORKS = ("tensorflow", "keras", "mlx", "jax", "torch")
SERVER_PACKAGES = ("bench_server", "fastapi", "sqlalchemy", "uvicorn", "alembic")
INSTALL = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")
COMMAND_SECONDS = 600
PROJECTED_TRIES = 20


class Failed(Exception):
    """A step failed; the message says why."""


def run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """What a command prints.

    Raises:
        Failed: it ended with an error.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
    )
    if done.returncode:
        raise Failed(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def versions(root: Path = ROOT) -> str:
    """The one version that all parts name.

    Raises:
        Failed: two parts name different ones.
    """
    named = dict(_versions(root))
    if len(set(named.values())) > 1:
        raise Failed("\n".join(f"{place}: {version}" for place, version in named.items()))
    return next(iter(named.values()))


def _versions(root: Path) -> Iterator[tuple[str, str]]:
    for folder, package in DISTRIBUTIONS.items():
        project = tomllib.loads((root / folder / "pyproject.toml").read_text())["project"]
        yield f"{folder}/pyproject.toml", project["version"]
        for need in project["dependencies"]:
            if need.startswith("bench-protocol"):
                yield f"{folder}/pyproject.toml, bench-protocol", need.partition("==")[2]
        source = (root / folder / "src" / package / "__init__.py").read_text()
        yield f"{package}.__version__", _first(r'__version__ = "(.+)"', source)
    yield "CHANGELOG.md", _first(r"## (\S+)", (root / "CHANGELOG.md").read_text())
    compose = (root / "docker-compose.yml").read_text()
    yield "docker-compose.yml", _first(r"trainmark-server:(\S+)", compose)


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found.group(1) if found else "none"


def build(tools: Path, dist: Path) -> str:
    """Source distributions, and wheels built from these."""
    for folder in DISTRIBUTIONS:
        run(tools / "python", "-m", "build", "--outdir", dist, ROOT / folder)
    run(tools / "python", "-m", "twine", "check", "--strict", *dist.iterdir())
    return f"{len(list(dist.iterdir()))} files"


def contents(dist: Path) -> str:
    """Wheels hold all files of the package, licence and metadata, and no tests."""
    count = 0
    for folder, package in DISTRIBUTIONS.items():
        (wheel,) = dist.glob(f"{package}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            fields = HeaderParser().parsestr(archive.read(metadata).decode())
        source = ROOT / folder / "src"
        tracked = run("git", "ls-files", source).splitlines()
        wanted = {str((ROOT / file).relative_to(source)) for file in tracked}
        wanted.add(f"{package}/py.typed")
        if package == "bench_server":
            migrations = run("git", "ls-files", "migrations/*.py").splitlines()
            wanted |= {f"bench_server/{file}" for file in migrations}
        wanted.add(metadata.replace("METADATA", "licenses/LICENSE"))
        if missing := wanted - names:
            raise Failed(f"{wheel.name} lacks {sorted(missing)}")
        if foreign := [name for name in names if not name.startswith((package, metadata[:-8]))]:
            raise Failed(f"{wheel.name} has {foreign}")
        for field in ("License-Expression", "License-File", "Summary", "Author", "Requires-Python"):
            if not fields[field]:
                raise Failed(f"{wheel.name}: its metadata has no {field}")
        count += len(names)
    return f"{count} files in 3 wheels"


def environment(dist: Path, folder: Path, what: str, absent: tuple[str, ...]) -> Path:
    """Install one distribution into an empty environment, from the built files and its lock.

    Args:
        what: ``agent`` or ``server``.
        absent: modules that it must not bring.

    Returns:
        The folder of its programs.
    """
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    install_locked(python, what)
    ours = ("--no-deps", "--no-index", "--find-links", dist, "bench-protocol", f"bench-{what}")
    run(python, *INSTALL, *ours, cwd=dist)
    run(python, "-m", "pip", "check")
    find = f"import importlib.util as u; print(*filter(u.find_spec, {absent!r}))"
    if brought := run(python, "-I", "-c", find, cwd=folder).split():
        raise Failed(f"bench-{what} brings {', '.join(brought)}")
    return folder / "bin"


def install_locked(python: Path, lock: str) -> None:
    """Install the packages of a lock."""
    run(python, *INSTALL, "--require-hashes", "-r", ROOT / "locks" / f"{lock}.txt")


@contextmanager
def serving(server: Path, settings: Mapping[str, str], folder: Path) -> Iterator[str]:
    """A server from its wheel; gives the address."""
    run(server / "bench-server", "migrate", cwd=folder, **settings)
    process = subprocess.Popen(
        [str(server / "bench-server"), "serve", "--port", "0"],
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stdout or ():
            if line.startswith("listening on "):
                yield line.split()[-1]
                return
        raise Failed("bench-server serve ended")
    finally:
        process.terminate()
        process.wait(timeout=30)


def smoke(agent: Path, server: Path, folder: Path) -> str:
    """Measure the smallest workload with MLX, send it, and find it on the board."""
    install_locked(agent / "python", "mlx")
    settings = {
        "BENCH_SERVER_DATABASE_URL": f"sqlite:///{folder / 'server.db'}",
        "BENCH_SERVER_KEYS_DIR": str(folder / "keys"),
        "BENCH_HOME": str(folder / "agent"),
    }
    program = agent / "bench-agent"
    run(program, "--help", cwd=folder)
    chosen = ("--framework", "mlx", "--workload", "mnist-dense", "--recipe", "naive")
    with serving(server, settings, folder) as address:
        run(program, "run", "--preset", "smoke", *chosen, "--repeats", "1", cwd=folder, **settings)
        run(program, "submit", "--server", address, "--yes", cwd=folder, **settings)
        for _ in range(PROJECTED_TRIES):
            with urlopen(f"{address}/api/v1/results") as answer:  # noqa: S310
                results = json.load(answer)["results"]
            if results:
                return f"{len(results)} result of {results[0]['workload']} is on the server"
            time.sleep(0.5)
    raise Failed("the server shows no result")


def bill_of_materials(tools: Path, folder: Path, dist: Path) -> str:
    """A CycloneDX document of each installed environment, beside the distributions."""
    count = 0
    for name in ("agent", "server"):
        file = dist / f"bench-{name}.cdx.json"
        run(tools / "cyclonedx-py", "environment", folder / name / "bin" / "python", "-o", file)
        document = json.loads(file.read_text())
        names = {part["name"] for part in document["components"]}
        if not {f"bench-{name}", "bench-protocol", "cryptography"} <= names:
            raise Failed(f"{file.name} names {sorted(names)}")
        count += len(names)
    return f"{count} components"


def with_uvx(tools: Path, folder: Path) -> str:
    """``uvx --from ./agent bench-agent --help`` needs nothing installed."""
    cache = folder / "uv-cache"
    said = run(tools / "uvx", "--from", "./agent", "bench-agent", "--help", UV_CACHE_DIR=str(cache))
    if "Usage" not in said:
        raise Failed(said[:500])
    return "prints its help"


def main() -> int:
    """Check everything; the built files stay in ``dist/``.

    Returns:
        The exit status: 0, or 1 after the first failure.
    """
    argparse.ArgumentParser(prog="make release-check", description=__doc__).parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    tools = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work = folder / "work"
        work.mkdir()
        agent, server = folder / "agent" / "bin", folder / "server" / "bin"
        steps: tuple[tuple[str, Callable[[], object]], ...] = (
            ("one version", versions),
            ("build, metadata", lambda: build(tools, dist)),
            ("contents", lambda: contents(dist)),
            (
                "agent alone",
                lambda: environment(dist, folder / "agent", "agent", SERVER_PACKAGES + FRAMEWORKS),
            ),
            (
                "server alone",
                lambda: environment(
                    dist, folder / "server", "server", ("bench_agent", *FRAMEWORKS)
                ),
            ),
            ("bill of materials", lambda: bill_of_materials(tools, folder, dist)),
            ("smoke run", lambda: smoke(agent, server, work)),
            ("uvx", lambda: with_uvx(tools, folder)),
        )
        for words, step in steps:
            try:
                print(f"{words:20}", end="", flush=True)
                print(step())
            except Failed as error:
                print(f"failed: {error}")
                return 1
    print("fit for a release: dist/")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
