"""``systemctl`` and ``systemd-run`` where no systemd runs: as strict as they are with units,
properties, users and settings. Nothing of the caller's environment reaches a unit.
"""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

UNITS = Path("/etc/systemd/system")
OPTIONS = ("--quiet", "--wait", "--collect", "--pty", "--pipe")
EXEC = (
    *("User", "StateDirectory", "StateDirectoryMode", "UMask", "WorkingDirectory"),
    *("Environment", "EnvironmentFile", "UnsetEnvironment", "LoadCredential"),
)
Properties = list[tuple[str, str]]


def enable(units: list[str]) -> None:
    """Check units by systemd's own parser, and run what their services do before they start."""
    for name in units:
        subprocess.run(["systemd-analyze", "verify", "--man=no", UNITS / name], check=True)
        lines = [line.partition("=") for line in text_of(name).splitlines()]
        own = [(key, value.replace("%d", credentials(name))) for key, _, value in lines]
        for key, value in own:
            if key == "ExecStartPre":
                properties = [pair for pair in own if pair[0] in EXEC]
                start(name, properties, value.split()).check_returncode()


def text_of(name: str) -> str:
    files = [UNITS / name, *sorted((UNITS / f"{name}.d").glob("*.conf"))]
    return "".join(f"# {path}\n{path.read_text()}\n" for path in files)


def credentials(unit: str) -> str:
    return f"/run/credentials/{unit}"


def start(
    unit: str, properties: Properties, command: list[str]
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command as a unit's, to its end."""
    first = dict(reversed(properties))
    user = pwd.getpwnam(first["User"])
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}
    for kind in ("Environment", "EnvironmentFile"):  # a file's settings have precedence
        for key, value in properties:
            if key == kind == "Environment":
                environment |= dict(word.split("=", 1) for word in value.split())
            elif key == kind and (Path(value.removeprefix("-")).exists() or value[0] != "-"):
                lines = Path(value.removeprefix("-")).read_text().splitlines()
                environment |= dict(line.split("=", 1) for line in lines if line[:1] not in "#;")
    for key, value in properties:
        if key == "UnsetEnvironment":
            environment.pop(value, None)
        if key == "LoadCredential":
            name, _, source = value.partition(":")
            Path(credentials(unit)).mkdir(parents=True, exist_ok=True)
            copy = shutil.copy(source, Path(credentials(unit)) / name)
            shutil.chown(copy, user.pw_uid)
            Path(copy).chmod(0o400)
    state = Path("/var/lib") / first["StateDirectory"]
    state.mkdir(exist_ok=True)
    state.chmod(int(first["StateDirectoryMode"], 8))
    shutil.chown(state, user.pw_uid, user.pw_gid)
    return subprocess.run(
        command, env=environment, cwd=first.get("WorkingDirectory", "/"), check=False,
        user=user.pw_uid, group=user.pw_gid, extra_groups=[], umask=int(first["UMask"], 8),
    )  # fmt: skip


def systemd_run(arguments: list[str]) -> int:
    properties: Properties = []
    unit = ""
    while arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option.startswith("--unit="):
            unit = option.partition("=")[2]
        elif option.startswith("--property="):
            key, _, value = option.removeprefix("--property=").partition("=")
            if key not in EXEC:
                sys.exit(f"Unknown assignment: {key}={value}")
            properties.append((key, value))
        elif option not in OPTIONS:
            sys.exit(f"systemd-run: unrecognized option '{option}'")
    return start(unit, properties, arguments).returncode


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("Failed to start transient service unit: Interactive authentication required.")
    program, *words = sys.argv[1:]
    if program == "systemd-run":
        sys.exit(systemd_run(words))
    if words[:2] == ["enable", "--now"]:
        enable(words[2:])
    elif words[0] == "cat":
        print(text_of(words[1]))
    else:
        sys.exit(f"systemctl {words[0]}: not known to this stand-in")
