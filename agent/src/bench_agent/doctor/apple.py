"""Check TensorFlow on Apple's GPU: version pairs that load, correct results of the plug-in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .finding import Finding
from .software import Software
from .versions import at_least, release

PLUGIN = "tensorflow-metal"
NAMES = ("tensorflow", "tensorflow-macos")
GOOD_PLUGIN = "1.2.0"
# With "1" the plug-in fuses nothing; engines/tensorflow/metal_probe.py sets it.
SWITCH = "TURN_OFF_REMAPPER"


@dataclass(frozen=True)
class PluginPair:
    """A plug-in, the minor version of TensorFlow that it loads into, and the NumPy that this
    allows.

    Sources: docs/adr/0001. The plug-in finds TensorFlow's library by the name it was linked
    with; TensorFlow 2.20 renamed it. 1.1.0 with 2.18: tensorflow issue 84167.
    """

    tensorflow: tuple[int, int]
    plugin: str
    numpy_below: str


PAIRS = (PluginPair((2, 18), "1.2.0", "2.1"), PluginPair((2, 19), "1.2.0", "2.2"))
FIRST_WITH_OTHER_NAME = "2.20"
SOUND = ("tensorflow>=2.18,<2.20", f"{PLUGIN}=={GOOD_PLUGIN}", "numpy<2.2", "keras>=3.12,<4")


def check_pair(software: Software, apple_silicon: bool) -> Iterator[Finding]:
    """Check that the versions load together, from metadata: a wrong pair breaks the import itself.

    Args:
        software: packages of the interpreter that TensorFlow's workers start under.
        apple_silicon: this is macOS on Apple's processor.
    """
    packages, pip_install = software.packages, software.pip.install
    tensorflow = next((packages[name] for name in NAMES if name in packages), None)
    plugin = packages.get(PLUGIN)
    if plugin is None:
        yield from _without_plugin(tensorflow, software, apple_silicon)
        return
    if tensorflow is None:
        yield Finding(
            "metal-pair",
            "fail",
            f"{PLUGIN} {plugin} is installed without TensorFlow",
            pip_install(SOUND[0], "numpy<2.2", "keras>=3.12,<4"),
        )
        return
    pair_words = f"{PLUGIN} {plugin} with TensorFlow {tensorflow}"
    minor = release(tensorflow)[:2]
    tested = next((pair for pair in PAIRS if pair.tensorflow == minor), None)
    if at_least(tensorflow, FIRST_WITH_OTHER_NAME):
        yield Finding(
            "metal-pair",
            "fail",
            f"{pair_words} cannot load: importing TensorFlow fails; 2.19 is the last that works",
            pip_install(SOUND[0], *_plugin_if_wrong(plugin), *_numpy_if_wrong(packages, "2.2")),
        )
    elif tested and plugin != tested.plugin:
        yield Finding(
            "metal-pair",
            "fail",
            f"{pair_words} is known to fail; {tested.plugin} is the one for it",
            pip_install(f"{PLUGIN}=={tested.plugin}"),
        )
    elif tested is None:
        yield Finding(
            "metal-pair",
            "warn",
            f"{pair_words} is not among the pairs that are known to load and compute correctly",
            pip_install(*SOUND),
        )
    elif _numpy_if_wrong(packages, tested.numpy_below):
        yield Finding(
            "metal-pair",
            "warn",
            f"NumPy {packages['numpy']} is newer than TensorFlow {tensorflow} allows",
            pip_install(f"numpy<{tested.numpy_below}"),
        )
    else:
        yield Finding("metal-pair", "ok", f"{pair_words} loads")


def check_probe(
    layers: str | None, problem: str | None, fuses: bool = True, software: Software = Software()
) -> Iterator[Finding]:
    """Check that layers and optimisers compute correctly on Metal.

    Args:
        layers: ``stock`` or ``safe``, the form a worker measured with; None if none was started.
        problem: why that worker failed, or None.
        fuses: whether it let the plug-in fuse operations.
    """
    if problem is not None:
        wrong = problem.startswith("wrong result")
        yield Finding(
            "metal-probe",
            "fail",
            "TensorFlow computes wrongly on this GPU, in every form we know"
            if wrong
            else f"a short training on Metal failed: {problem}",
            software.pip.uninstall(PLUGIN) if wrong else software.pip.install(*SOUND),
        )
    elif layers is None:
        yield Finding("metal-probe", "skip", "TensorFlow sees no Metal device here")
    elif layers == "safe":
        yield Finding(
            "metal-probe",
            "warn",
            "tensorflow-metal computes fused dense and ReLU layers wrongly; runs avoid the fusion "
            "and their results say layers=safe",
            "bench-agent run --preset smoke --framework mlx",
        )
    elif not fuses:
        yield Finding(
            "metal-probe",
            "warn",
            f"{PLUGIN} fuses operations wrongly; runs switch that off, and their results say "
            f"{SWITCH}=1",
            "bench-agent run --preset smoke --framework mlx",
        )
    else:
        yield Finding("metal-probe", "ok", "layers and optimisers compute correctly on Metal")


def _without_plugin(
    tensorflow: str | None, software: Software, apple_silicon: bool
) -> Iterator[Finding]:
    if not apple_silicon:
        yield Finding("metal-pair", "skip", "Apple's plug-in is for Macs only")
    elif tensorflow is None:
        yield Finding("metal-pair", "skip", "TensorFlow is not installed")
    else:
        loads = any(release(tensorflow)[:2] == pair.tensorflow for pair in PAIRS)
        hint = software.pip.install(*((f"{PLUGIN}=={GOOD_PLUGIN}",) if loads else SOUND))
        yield Finding(
            "metal-pair", "warn", f"TensorFlow {tensorflow} without {PLUGIN}: the CPU only", hint
        )


def _plugin_if_wrong(plugin: str) -> tuple[str, ...]:
    return () if plugin == GOOD_PLUGIN else (f"{PLUGIN}=={GOOD_PLUGIN}",)


def _numpy_if_wrong(packages: Mapping[str, str], below: str) -> tuple[str, ...]:
    numpy = packages.get("numpy")
    return (f"numpy<{below}",) if numpy and at_least(numpy, below) else ()
