"""``make check-mac``: what can be known of a Mac without one.

It downloads every wheel of the Mac's environments, checks tags and symbols, runs the agent's macOS
path against stand-ins of Apple's commands, and the engines' tests with the Mac's versions. Each
part that cannot be done fails and says why. Nothing here replaces a run on a Mac: no GPU computes.
"""

import argparse
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deploy.locks import ROOT
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import engines, symbols, wheels
from .wheels import TARGETS, Target

FOLDER = ROOT / ".check-mac"
WHEELS = FOLDER / "wheels"
PLUGIN, TENSORFLOW, MLX, MLX_METAL = "tensorflow-metal", "tensorflow", "mlx", "mlx-metal"
VERSIONS = (TENSORFLOW, "keras", "numpy", MLX, "jax")
# TensorFlow's libraries that are loaded before the plug-in.
CORE = r"/(_pywrap_tensorflow_internal\.so|libtensorflow_(framework|cc)\.2\.dylib)$"
MACHINE_TESTS = (
    "tests/system/test_on_a_mac.py",
    "tests/agent/test_machine_apple.py",
    "tests/agent/test_sensors.py",
)
PROBLEMS = (
    wheels.DownloadFailed,
    engines.StepFailed,
    LookupError,
    OSError,
    ValueError,
    zipfile.BadZipFile,
)


@dataclass(frozen=True)
class Row:
    """A line of the table; ``problem`` is None where the check passed."""

    part: str
    what: str
    result: str
    problem: str | None = None


def checked(part: str, what: str, check: Callable[[], str]) -> Row:
    """The row of one check: its result, or why it failed."""
    print(f"{part}: {what} ...", flush=True)
    try:
        return Row(part, what, check())
    except PROBLEMS as problem:
        words = str(problem) or type(problem).__name__
        return Row(part, what, words.splitlines()[0], words)


def check_wheels() -> Iterator[Row]:
    """Download and check the wheels of each Mac."""
    for target in TARGETS:
        yield checked("wheels", str(target), partial(downloaded, target))
        yield checked("tags", str(target), partial(fitting, target))


def downloaded(target: Target) -> str:
    """Download the wheels of a Mac; how many they are and how large."""
    FOLDER.mkdir(exist_ok=True)
    there = sum(path.stat().st_size for path in WHEELS.glob("*.whl"))
    free = shutil.disk_usage(FOLDER).free
    if free + there < wheels.NEEDED_BYTES:
        raise OSError(f"{free / 2**30:.1f} GiB are free; the wheels need 4")
    wheels.download(target, WHEELS)
    chosen, _ = wheels.chosen(target, WHEELS)
    size = sum(wheel.stat().st_size for wheel in chosen)
    return f"{len(chosen)} of {len(wheels.pins(target))} packages, {size / 1e6:,.0f} MB"


def fitting(target: Target) -> str:
    """Check that each package has a wheel for a Mac and that its libraries run there."""
    chosen, problems = wheels.chosen(target, WHEELS)
    problems += [line for wheel in chosen for line in wheels.too_new(wheel, target)]
    if problems:
        raise ValueError("\n".join(problems))
    return f"{len(chosen)} wheels fit, with every library in them"


def check_symbols() -> Iterator[Row]:
    """Bind Apple's plug-in to TensorFlow, and MLX's module to its library."""
    for target in TARGETS:
        if not target.plug_in:
            yield checked("symbols", f"MLX, {target}", partial(mlx_binds, target))
        elif target.macos == wheels.SYSTEMS[0]:  # TensorFlow's wheels are the same for all
            what = f"{PLUGIN} in TensorFlow, Python {target.python}"
            yield checked("symbols", what, partial(plugin_binds, target))


def plugin_binds(target: Target) -> str:
    """Check the symbols that tensorflow-metal takes from TensorFlow."""
    chosen, _ = wheels.chosen(target, WHEELS)
    (plugin,) = wheels.libraries_in(wheels.wheel_of(PLUGIN, chosen))
    core = tuple(wheels.libraries_in(wheels.wheel_of(TENSORFLOW, chosen), CORE))
    fewer = tuple(library for library in core if "framework" not in library.name)
    if not symbols.unbound(plugin, fewer):
        raise ValueError("the check finds nothing where a library of TensorFlow is missing")
    return bound(plugin, core)


def mlx_binds(target: Target) -> str:
    """Check the symbols of MLX's module, and that the Metal kernels are beside its library."""
    chosen, _ = wheels.chosen(target, WHEELS)
    (module,) = wheels.libraries_in(wheels.wheel_of(MLX, chosen), r"/core\.[^/]*\.so$")
    metal = wheels.wheel_of(MLX_METAL, chosen)
    (library,) = wheels.libraries_in(metal, r"/libmlx\.dylib$")
    kernels = str(Path(library.name).with_name("mlx.metallib"))
    if wheels.first_bytes(metal, kernels) != symbols.METAL_LIBRARY:
        raise ValueError(f"{metal.name}: {kernels} is no library of Metal kernels")
    return f"{bound(module, (library,))}; kernels beside it"


def bound(library: symbols.Library, others: tuple[symbols.Library, ...]) -> str:
    """Check that a library can be bound to others; how many symbols that are."""
    reasons = symbols.unbound(library, others)
    if reasons:
        raise ValueError("\n".join(reasons))
    return f"{symbols.checked(library, others)} symbols are defined"


def check_agent() -> Iterator[Row]:
    """Run the agent's macOS path: doctor, devices and a run."""
    what = "stand-in commands"
    yield checked("agent", what, partial(engines.tested, sys.executable, *MACHINE_TESTS))


def check_engines() -> Iterator[Row]:
    """Run the engines' tests with the Mac's versions."""
    for plug_in in (False, True):
        what = f"versions of {engines.target(plug_in=plug_in)}, without PyTorch"
        yield checked("engines", what, partial(engines_pass, plug_in))


def engines_pass(plug_in: bool) -> str:
    """Install the Mac's versions for this system, and run the engines' tests with them."""
    target = engines.target(plug_in=plug_in)
    python = engines.install(FOLDER / ("engines-tensorflow" if plug_in else "engines"), target)
    versions = dict(wheels.pins(target))
    names = ", ".join(f"{name} {versions[name]}" for name in VERSIONS if name in versions)
    return f"{engines.tested(python, 'tests/engines')}; {names}"


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "wheels": check_wheels,
    "symbols": check_symbols,
    "agent": check_agent,
    "engines": check_engines,
}


def show(rows: list[Row], console: Console) -> None:
    """Print each problem in full, then the table."""
    for row in rows:
        if row.problem:
            console.print(
                f"\n{row.part}, {row.what}:\n{row.problem}", markup=False, highlight=False
            )
    table = Table()
    for heading in ("part", "what", "", "result"):
        table.add_column(heading)
    for row in rows:
        verdict = Text("FAILED", "bold red") if row.problem else Text("ok", "green")
        table.add_row(row.part, row.what, verdict, Text(row.result))
    console.print(table)


def main() -> int:
    """Run the parts; 1 if any check failed."""
    parser = argparse.ArgumentParser(prog="make check-mac")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; repeatable")
    options = parser.parse_args()
    rows = [row for name in options.only or PARTS for row in PARTS[name]()]
    show(rows, Console(width=None if sys.stdout.isatty() else 120))
    return int(any(row.problem for row in rows))


if __name__ == "__main__":
    sys.exit(main())
