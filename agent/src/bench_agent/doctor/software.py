"""Check the packages of each interpreter: one CUDA in each, and a worker that can start."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..base.install_hints import CUDA_12_LIBRARY, Pip
from ..run.interpreters import Interpreter
from .finding import Finding

CUDA_12, CUDA_13 = "cuda12", "cuda13"


@dataclass(frozen=True)
class Software:
    """The packages of one interpreter, and the commands that change them.

    ``packages``: versions of the installed distributions by normalised name. ``place``: goes into
    a sentence; empty for the agent's own interpreter.
    """

    packages: Mapping[str, str] = field(default_factory=dict)
    pip: Pip = field(default_factory=Pip)
    place: str = ""

    @property
    def cuda(self) -> str | None:
        """The CUDA whose cuDNN is installed; None without one. CUDA 12 where both are, because
        TensorFlow has no other."""
        if CUDA_12_LIBRARY in self.packages:
            return CUDA_12
        return CUDA_13 if "nvidia-cudnn-cu13" in self.packages else None


def software_of(interpreter: Interpreter) -> Software:
    """An interpreter that was asked for its packages."""
    there = interpreter.description
    place = f" in {interpreter.path}" if interpreter.path else ""
    return Software(there.packages if there else {}, interpreter.pip, place)


def check_environments(every: Sequence[Interpreter], unreadable: str | None) -> Iterator[Finding]:
    """One finding for each added interpreter: whether a worker can start under it.

    Args:
        unreadable: why the list of added interpreters cannot be read.
    """
    if unreadable:
        yield Finding("environments", "fail", unreadable)
    elif len(every) == 1:
        yield Finding("environments", "skip", "no interpreter was added to the agent's own")
    for interpreter in every[1:]:
        if interpreter.problem:
            yield Finding(
                "environments",
                "fail",
                f"{interpreter.place}: {interpreter.problem}; runs leave it out",
                interpreter.hint,
            )
        else:
            frameworks = ", ".join(interpreter.frameworks) or "no framework"
            yield Finding("environments", "ok", f"{interpreter.place} has {frameworks}")


def check_shared_libraries(every: Sequence[Interpreter]) -> Iterator[Finding]:
    """Check that no two distributions install different content into one file.

    Which content is there depends on the order of their installation, and reinstalling one leaves
    a mixture. cuDNN and NCCL for CUDA 12 and for CUDA 13 are such pairs; pip reports nothing.
    """
    sound = True
    for interpreter in every:
        for group in interpreter.description.shared if interpreter.description else ():
            sound = False
            names = " and ".join(group.distributions)
            others = f" and {group.libraries - 1} more" if group.libraries > 1 else ""
            yield Finding(
                "shared-libraries",
                "fail",
                f"{names} both install {group.example}{others}{software_of(interpreter).place}: "
                "make separate environments, one for each CUDA",
                interpreter.pip.separate_environments(),
            )
    if sound:
        yield Finding("shared-libraries", "ok", "each shared library has one owner")
