"""Services of docker-compose.yml as processes of this machine: the same commands and settings, with
folders in place of volumes and loopback in place of the network."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[3]
COMPOSE = ROOT / "docker-compose.yml"
START_SECONDS = 60
# Where the image has a file of this repository.
COPIED = {"/usr/local/bin/daily.sh": str(ROOT / "deploy" / "daily.sh")}
# Its programs are on PATH.
PATH = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
HERE = ("LANG", "PYTHONPATH")


class Site:
    """The services, with their files in ``folder``."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        self.secrets = folder / "secrets"
        text = re.sub(
            r"\$\{(\w+):-([^}]*)\}", lambda m: variables.get(m[1], m[2]), COMPOSE.read_text()
        )
        self._services: dict[str, Any] = yaml.safe_load(text)["services"]

    def environment(self, name: str, **others: str) -> dict[str, str]:
        """A service's own variables and nothing of this shell but PATH; ``others`` override. The
        site's ``settings.env`` is in its folder."""
        given = self._services[name].get("environment", {})
        for file in self._services[name].get("env_file", ()):
            path = self.folder / Path(file["path"]).name
            lines = path.read_text().splitlines() if path.exists() else ()
            given = dict(line.split("=", 1) for line in lines) | given
        places = {"/run/secrets": str(self._secrets(name))}
        for mount in self._services[name].get("volumes", ()):
            volume, at = mount.split(":")[:2]
            if "/" not in volume:  # else a file of this repository
                places[at] = str(self.volume(volume))
        mine = {key: places.get(value, value) for key, value in given.items()}
        kept = {key: os.environ[key] for key in HERE if key in os.environ}
        return kept | PATH | mine | others

    def command(self, name: str) -> list[str]:
        service = self._services[name]
        program = service.get("entrypoint", ["bench-server"])
        return [COPIED.get(word, word) for word in [*program, *service["command"]]]

    def run(self, name: str, *arguments: str, program: str | None = None) -> str:
        """Run a service to its end, or another program in its place; returns what it printed."""
        command = [program] if program else self.command(name)
        done = subprocess.run(
            [*command, *arguments],
            env=self.environment(name), cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"test-deploy: {name}: {done.stderr.strip()}")
        return done.stdout

    @contextmanager
    def running(self, name: str, says: str, **others: str) -> Iterator[subprocess.Popen[str]]:
        """A service that has printed a line which begins with ``says``, until the context ends."""
        process = subprocess.Popen(
            self.command(name), env=self.environment(name, **others), cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            if not any(line.startswith(says) for line in process.stdout or ()):
                raise SystemExit(f"test-deploy: {name} did not start")
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise

    def volume(self, name: str) -> Path:
        """The folder in place of a volume, made with the mode that the image gives it."""
        path = self.folder / "volumes" / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def _secrets(self, name: str) -> Path:
        """The service's secrets alone, under the names it has them by."""
        folder = self.folder / "secrets-of" / name
        folder.mkdir(parents=True, exist_ok=True)
        for secret in self._services[name].get("secrets", ()):
            named = {"source": secret, "target": secret} if isinstance(secret, str) else secret
            (folder / named["target"]).write_text((self.secrets / named["source"]).read_text())
        return folder
