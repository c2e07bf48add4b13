"""Limits of control groups (cgroup v1 and v2): processor time and memory of this process."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from .text import file_text, positive_or_none, whole_or_none

UNLIMITED_BYTES = 2**60  # version 1 writes 2**63 rounded down to a page
MOST_LEVELS = 32


def parse_cpu_max(text: str) -> float | None:
    """Cores granted by ``cpu.max`` (``200000 100000`` is 2.0); None without a limit."""
    words = text.split()
    if len(words) != 2:
        return None
    quota, period = (whole_or_none(word) for word in words)
    return positive_or_none(quota / period) if quota and period else None


def parse_memory_limit(text: str) -> int | None:
    """Bytes of ``memory.max`` or ``memory.limit_in_bytes``; None without a limit."""
    limit = whole_or_none(text.strip())
    return limit if limit and limit < UNLIMITED_BYTES else None


def quota_cores(root: Path = Path("/")) -> float | None:
    """Processor time granted by the tightest group above this process, in cores."""
    quotas = [parse_cpu_max(file_text(folder / "cpu.max")) for folder in _folders(root, "")]
    for folder in _folders(root, "cpu"):
        quota = file_text(folder / "cpu.cfs_quota_us").strip()
        quotas.append(parse_cpu_max(f"{quota} {file_text(folder / 'cpu.cfs_period_us').strip()}"))
    return min(filter(None, quotas), default=None)


def memory_bytes(root: Path = Path("/")) -> int | None:
    """The tightest memory limit above this process, in bytes."""
    limits = [parse_memory_limit(file_text(folder / "memory.max")) for folder in _folders(root, "")]
    limits += [
        parse_memory_limit(file_text(folder / "memory.limit_in_bytes"))
        for folder in _folders(root, "memory")
    ]
    return min(filter(None, limits), default=None)


def available_bytes(root: Path = Path("/")) -> int | None:
    """The least memory that a limited group above this process has left, in bytes."""
    names = [("", "memory.max", "memory.current")]
    names += [("memory", "memory.limit_in_bytes", "memory.usage_in_bytes")]
    left = []
    for controller, most, used in names:
        for folder in _folders(root, controller):
            limit = parse_memory_limit(file_text(folder / most))
            now = whole_or_none(file_text(folder / used).strip())
            left += [max(0, limit - now)] if limit and now else []
    return min(left, default=None)


def _mounted(root: Path, controller: str) -> Path:
    """Where a controller's tree is mounted, alone or with others (``cpu,cpuacct``)."""
    for line in file_text(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = (*after.split(" ", 2), "", "")[:3]
        if controller and kind == "cgroup" and controller in options.strip().split(","):
            return root / (before.split(" ") + [""] * 5)[4].lstrip("/")
    return root / "sys/fs/cgroup" / controller


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Folders of this process's group and its parents; ""is the single tree of version 2."""
    mounted = _mounted(root, controller)
    group = PurePosixPath("/")
    for line in file_text(root / "proc/self/cgroup").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if controller in names.split(","):
            group = PurePosixPath(path)
    if ".." in group.parts:  # a group outside this namespace
        group = PurePosixPath("/")
    for level in (group, *group.parents)[:MOST_LEVELS]:
        yield mounted / str(level).lstrip("/")
