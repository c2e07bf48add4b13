"""``python3 FOLDER/start.py STEP`` on the CUDA machine: install the packed wheels beside its own
PyTorch and JAX, once and without a network, and run a step.

``OUT`` names the folder of the results (``/tmp/out``), ``SITE`` that of the environment
(``/tmp/trainmark-site``). Besides PyTorch and JAX it needs Python 3.12 with pip.
"""

import os
import site
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
SITE = Path(os.environ.get("SITE") or "/tmp/trainmark-site")


def install() -> Path:
    """The environment's interpreter; it also sees what this interpreter has."""
    python = SITE / "bin" / "python"
    ready = SITE / "installed"
    if ready.exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(SITE)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    wheels = sorted(map(str, (HERE / "wheels").glob("*.whl")))
    subprocess.run([*pip, "--no-index", "--no-deps", "--no-compile", *wheels], check=True)
    folder = Path(sysconfig.get_path("purelib", vars={"base": str(SITE)}))
    own = [*site.getsitepackages(), site.getusersitepackages()]
    (folder / "frameworks.pth").write_text("\n".join(own) + "\n")
    ready.touch()
    return python


def main() -> None:
    python = install()
    os.chdir(HERE / "src")
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.update(PATH=path, PYTHONPATH=str(HERE / "src"), PYTHONUNBUFFERED="1")
    os.environ.setdefault("KEPT", str(HERE / "kept"))
    os.execv(python, [str(python), "-m", "tests.evidence.gpu", *sys.argv[1:]])


if __name__ == "__main__":
    main()
