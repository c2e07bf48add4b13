"""Detect a container, a virtual machine or WSL around this Linux."""

import re
from collections.abc import Mapping
from pathlib import Path

from .text import command_output, file_text, slug_or_none

# Words in maker and product names in DMI; the first match counts.
DMI_HYPERVISORS = (
    ("amazon ec2", "ec2"),
    ("google compute engine", "google-compute-engine"),
    ("microsoft corporation virtual", "hyper-v"),
    ("apple virtualization", "apple"),
    ("innotek", "virtualbox"),
    ("virtualbox", "virtualbox"),
    ("vmware", "vmware"),
    ("parallels", "parallels"),
    ("firecracker", "firecracker"),
    ("openstack", "openstack"),
    ("digitalocean", "digitalocean"),
    ("hvm domu", "xen"),
    ("xen", "xen"),
    ("bhyve", "bhyve"),
    ("kvm", "kvm"),
    ("qemu", "qemu"),
    ("bochs", "bochs"),
)
# Words in a control group's path or a mount's source.
CONTAINER_PATHS = (
    (r"/kubepods|/kubelet/pods/", "kubernetes"),
    (r"libpod|containers/storage/overlay-containers", "podman"),
    (r"/docker[/-]|/var/lib/docker/containers/", "docker"),
    (r"/lxc[./]|/lxc\.payload|/var/lib/lxcfs", "lxc"),
    (r"cri-containerd|/containerd/", "containerd"),
    (r"/machine\.slice/machine-.*\.scope|systemd-nspawn", "systemd-nspawn"),
)


def container(root: Path, environ: Mapping[str, str]) -> str | None:
    """Kind of the container around this process, or None. One of several traces is enough."""
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    if environ.keys() & {"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"}:
        return "apptainer"
    # Only administrators can read the first process's environment; systemd copies the word.
    first = dict(
        pair.partition("=")[::2] for pair in file_text(root / "proc/1/environ").split("\0")
    )
    for word in (
        environ.get("container"),
        first.get("container"),
        file_text(root / "run/systemd/container"),
    ):
        if word and word.strip() not in ("", "wsl"):
            return slug_or_none(word) or "unknown"
    return parse_container_traces(
        file_text(root / "proc/1/cgroup") + file_text(root / "proc/self/cgroup"),
        file_text(root / "proc/self/mountinfo"),
    )


def parse_container_traces(cgroups: str, mounts: str) -> str | None:
    """Kind of container, from control-group paths and mounts over its files."""
    over_own_files = [
        line
        for line in mounts.splitlines()
        if re.search(
            r" /(?:etc/(?:hostname|hosts|resolv\.conf)|dev/termination-log|proc/\w+) ", line
        )
    ]
    for traces in (cgroups, "\n".join(over_own_files)):
        for pattern, name in CONTAINER_PATHS:
            if re.search(pattern, traces):
                return name
    return None


def virtual_machine(root: Path, hypervisor_flag: bool, product: str) -> str | None:
    """The hypervisor under this system, or None on bare metal. ``hypervisor_flag``: of the
    processor (x86 only). ``product``: maker and model of the machine."""
    if wsl(root) == 2:
        return "hyper-v"
    named = parse_product(product)
    if named:
        return named
    kind = file_text(root / "sys/hypervisor/type").strip()
    if kind == "xen" and "control_d" not in file_text(root / "proc/xen/capabilities"):
        return "xen"
    tree = file_text(root / "proc/device-tree/hypervisor/compatible")
    if tree:
        return slug_or_none(tree.split("\0")[0].partition(",")[2]) or "unknown"
    return _said_by_systemd(root) or ("unknown" if hypervisor_flag else None)


def parse_product(product: str) -> str | None:
    """The hypervisor, from the product's name; EC2's ``.metal`` machines have none."""
    text = product.lower()
    if "amazon ec2" in text and re.search(r"\.metal\b", text):
        return None
    return next((name for words, name in DMI_HYPERVISORS if words in text), None)


def wsl(root: Path) -> int | None:
    """Version of the Windows Subsystem for Linux, or None elsewhere."""
    release = file_text(root / "proc/sys/kernel/osrelease") or file_text(root / "proc/version")
    interop = (root / "proc/sys/fs/binfmt_misc/WSLInterop").exists()
    return parse_wsl(release, interop)


def parse_wsl(release: str, interop: bool = False) -> int | None:
    """1 or 2 from the kernel's release; a custom kernel is recognised only by ``WSLInterop``."""
    text = release.lower()
    if "wsl2" in text or "microsoft-standard" in text:
        return 2
    if "microsoft" in text:
        return 1
    return 2 if interop else None


def _said_by_systemd(root: Path) -> str | None:
    if root != Path("/"):
        return None
    word = command_output("systemd-detect-virt", "--vm").strip()
    return None if word in ("", "none") else slug_or_none(word)
