"""``docker compose`` where there is none: options and services are checked, and a command of
``run`` and ``exec`` runs on this machine, with folders in place of volumes.
"""

import os
import subprocess
import sys
from pathlib import Path

import yaml  # type: ignore[import-untyped]

BARE = ("--rm", "--no-deps", "--detach")
VALUED = ("--volume", "--entrypoint")


def main(arguments: list[str]) -> int:
    document = yaml.safe_load(Path("docker-compose.yml").read_text())
    if arguments.pop(0) != "compose" or (command := arguments.pop(0)) not in ("run", "exec", "up"):
        sys.exit(f"docker: unknown command: {arguments}")
    given: dict[str, str] = {}
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option not in BARE + VALUED:
            sys.exit(f"unknown flag: {option}")
        given[option] = arguments.pop(0) if option in VALUED else ""
    if command == "up":
        files = [Path(one["file"]) for one in document["secrets"].values()]
        missing = [path for path in files if not path.is_file()]
        sys.exit(f"bind source path does not exist: {missing[0]}" if missing else 0)
    service = document["services"][arguments.pop(0)]
    sandbox = Path("volumes")
    places = {volume.split(":")[1]: sandbox / volume.split(":")[0] for volume in service["volumes"]}
    if "--volume" in given:
        source, at, _ = given["--volume"].split(":")
        places[at] = Path(source)
        if not places[at].is_dir():
            sys.exit(f"no folder {source}: docker would make an empty one")
    for folder in {place for place in places.values() if place.parent == sandbox}:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    program = [given["--entrypoint"]] if "--entrypoint" in given else service.get("entrypoint", [])
    words = [*program, *(arguments or service["command"])]
    if command == "run" and not program:
        words = ["bench-server", *words]  # the image's
    for at, place in places.items():
        words = [
            str(place.resolve()) + word.removeprefix(at) if word.startswith(at) else word
            for word in words
        ]
    file = Path(".env").read_text().splitlines() if Path(".env").exists() else ()
    variables = dict(line.split("=", 1) for line in file) | os.environ
    settings = {
        "BENCH_SERVER_DATABASE_URL": f"sqlite:///{sandbox.resolve()}/database.db",
        "BENCH_SERVER_KEYS_DIR": str(places["/keys"].resolve()),
        "BENCH_SERVER_ORIGIN": variables.get("TRAINMARK_NAME", "trainmark.localhost"),
    }
    return subprocess.run(words, env=os.environ | settings, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
