"""Real virtual environments that hold some of the packages of the Python that runs the tests."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import distributions
from pathlib import Path


def make_environment(folder: Path, has: Callable[[str], bool] = lambda name: True) -> Path:
    """An environment without pip; ``has``: entries of its ``site-packages``. Its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for there in {Path(str(item.locate_file(""))) for item in distributions()}:
        if there.name == "site-packages":
            for entry in there.iterdir():
                if has(entry.name) and not (site / entry.name).exists():
                    (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def distribution(folder: Path, name: str, version: str, files: Mapping[str, str] = {}) -> Path:
    """Metadata as pip leaves it; RECORD has the hash of each file's content."""
    path = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    path.mkdir(parents=True)
    (path / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{file},sha256={digest},4096\n" for file, digest in files.items()]
    (path / "RECORD").write_text("".join(lines))
    return path
