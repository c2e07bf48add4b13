"""Limits of control groups (cgroup v1 and v2): processor time and memory of this process."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from .text import file_text, positive_or_none, whole_or_none

UNLIMITED_BYTES = 2**60  # version 1 writes 2**63 rounded down to a page
MOST_LEVELS = 32
# In memory.stat; version 1 has two lines: of the group itself, and of all groups below it.
INACTIVE_FILES = r"^(?:total_)?inactive_file (\d{1,16})$"


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
    return min((limit for limit, _ in _memory_limits(root)), default=None)


def available_bytes(root: Path = Path("/")) -> int | None:
    """The least memory that a limited group above this process has left, in bytes. Files that the
    system keeps in memory and has not used lately are left: it drops them first."""
    return min((max(0, limit - used) for limit, used in _memory_use(root)), default=None)


def used_bytes(root: Path = Path("/")) -> int | None:
    """Memory in use in the group that has the least left, in bytes; None without a limit."""
    return min(((limit - used, used) for limit, used in _memory_use(root)), default=(0, None))[1]


def _memory_use(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and memory in use, without files, of each limited group, in bytes."""
    for limit, folder in _memory_limits(root):
        used = file_text(folder / "memory.current") or file_text(folder / "memory.usage_in_bytes")
        files = re.findall(INACTIVE_FILES, file_text(folder / "memory.stat"), re.MULTILINE)
        if now := whole_or_none(used.strip()):
            yield limit, max(0, now - max(map(int, files), default=0))


def _memory_limits(root: Path) -> Iterator[tuple[int, Path]]:
    """Limits in bytes, each with its group's folder: above ``high`` a group is slowed down."""
    names = (("", "memory.max"), ("", "memory.high"), ("memory", "memory.limit_in_bytes"))
    for controller, name in names:
        for folder in _folders(root, controller):
            if limit := parse_memory_limit(file_text(folder / name)):
                yield limit, folder


def _mounted(root: Path, controller: str) -> tuple[Path, PurePosixPath]:
    """Where a controller's tree is mounted, alone or with others (``cpu,cpuacct``), and the group
    that is its root there. The controller "" is the single tree of version 2."""
    for line in file_text(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = (*after.split(" ", 2), "", "")[:3]
        fields = [
            re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), f) for f in before.split(" ")
        ]
        if len(fields) > 4 and (
            controller in options.strip().split(",")
            if kind == "cgroup" and controller
            else kind == "cgroup2" and not controller
        ):
            return root / fields[4].lstrip("/"), PurePosixPath(fields[3])
    return root / "sys/fs/cgroup" / controller, PurePosixPath("/")


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Folders of this process's group and its parents, as far as they are mounted."""
    mounted, top = _mounted(root, controller)
    group = PurePosixPath("/")
    for line in file_text(root / "proc/self/cgroup").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if controller in names.split(","):
            group = PurePosixPath(path)
    if ".." in group.parts:  # a group outside this namespace
        group = PurePosixPath("/")
    if group.is_relative_to(top):
        group = PurePosixPath("/") / group.relative_to(top)
    for level in (group, *group.parents)[:MOST_LEVELS]:
        yield mounted / str(level).lstrip("/")
