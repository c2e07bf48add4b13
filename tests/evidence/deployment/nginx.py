"""The reverse proxy: nginx of this machine, else Debian's package, unpacked and not installed."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .services import ROOT

TEMPLATE = ROOT / "deploy" / "nginx" / "trainmark.conf.template"
UNPACKED = ROOT / ".test-deploy" / "nginx"
MAIN = """
daemon off;
{user}
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  scgi_temp_path {folder}/scgi;
  uwsgi_temp_path {folder}/uwsgi;
  include {folder}/default.conf;
}}
"""


def program() -> str:
    """Where nginx is.

    Raises:
        SystemExit: it is missing, and Debian's package cannot be had.
    """
    here = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    unpacked = UNPACKED / "usr" / "sbin" / "nginx"
    if here is None and not unpacked.exists() and shutil.which("apt-get"):
        UNPACKED.mkdir(parents=True, exist_ok=True)
        got = subprocess.run(
            ["apt-get", "download", "nginx"], cwd=UNPACKED, capture_output=True, check=False
        )
        if got.returncode == 0:
            (package,) = UNPACKED.glob("nginx_*.deb")
            subprocess.run(["dpkg", "-x", package, UNPACKED], check=True)
    if here is None and not unpacked.exists():
        raise SystemExit("test-deploy: nginx is missing; install it (apt install nginx)")
    return here or str(unpacked)


@contextmanager
def running(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """nginx with the template's variables replaced, as its image does it."""
    folder.mkdir(parents=True)
    text = re.sub(r"\$\{(\w+)\}", lambda match: variables[match[1]], TEMPLATE.read_text())
    (folder / "default.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user))
    command = [program(), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    if checked.returncode:
        raise SystemExit(f"test-deploy: {checked.stderr.strip()}")
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)
