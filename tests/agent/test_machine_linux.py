"""Machine facts of Linux, from recorded files of /proc and /sys in a folder."""

import getpass
import platform
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_agent import machine
from bench_agent.base.home import Home
from bench_agent.machine import cgroup, linux, nesting
from bench_agent.machine.cpuinfo import brand_of, parse_cpuinfo
from bench_agent.machine.topology import parse_list
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import hardware_name
from bench_protocol.payload.machine import Machine

EL9 = "5.14.0-503.11.1.el9_5.x86_64"
CPU = Device(kind="cpu")
XEON = """processor\t: {n}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Gold 9999 CPU @ 2.10GHz
physical id\t: {socket}
cpu cores\t: 2
flags\t\t: fpu sse4_2 avx avx2 fma avx512f amx_bf16 {extra}

"""
ARM = """processor\t: {n}
BogoMIPS\t: 50.00
Features\t: fp asimd asimdhp sve bf16 i8mm
CPU implementer\t: {who}
CPU architecture: 8
CPU part\t: {part}

"""
MOUNTED = "9 8 0:1 /var/lib/docker/{} rw\n"
OS_RELEASE = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\n'


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return root


def x86(cores: int = 4, sockets: int = 2, extra: str = "") -> str:
    return "".join(XEON.format(n=n, socket=n % sockets, extra=extra) for n in range(cores))


def arm(*parts: tuple[str, str]) -> str:
    return "".join(ARM.format(n=n, who=who, part=part) for n, (who, part) in enumerate(parts))


def topology(cores: list[str], **extra: str) -> dict[str, str]:
    base = "sys/devices/system/cpu"
    files = {f"{base}/online": f"0-{len(cores) - 1}\n"}
    for number, threads in enumerate(cores):
        files[f"{base}/cpu{number}/topology/thread_siblings_list"] = threads + "\n"
        files[f"{base}/cpu{number}/topology/physical_package_id"] = "0\n"
    return files | extra


def whole(root: Path, environ: dict[str, str] | None = None, release: str = "6.8.0") -> Machine:
    facts = machine.MachineFacts(
        cpu=linux.cpu(root),
        os=linux.operating_system(root, environ or {}, release),
        gpus=(),
        model=linux.model(root),
        memory_bytes=linux.memory_bytes(root),
    )
    return machine.make_machine(facts, "0" * 64)


def test_a_server_with_two_sockets(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": x86(extra="sme"),  # encrypted memory, and no instruction set
        "etc/os-release": OS_RELEASE,
        "proc/meminfo": "MemTotal: 64 kB",
    }
    server = whole(write(tmp_path, files))
    assert hardware_name(server, CPU) == "Intel Xeon Gold 9999"
    assert (server.cpu.sockets, server.memory_bytes) == (2, 64 * 1024)
    assert server.cpu.instruction_sets == ("sse4_2", "avx", "avx2", "fma", "avx512f", "amx_bf16")
    assert server.os.version == "Ubuntu 24.04.1 LTS"
    assert server.os.virtual_machine is server.os.container is None


def test_a_hybrid_intel_counts_physical_cores_of_each_kind(tmp_path: Path) -> None:
    cores = ["0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7"]
    files = topology(cores) | {
        "sys/devices/cpu_core/cpus": "0-3\n",
        "sys/devices/cpu_atom/cpus": "4-7\n",
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "5200000\n",
        "proc/cpuinfo": x86(8, 1),
    }
    cpu = linux.cpu(write(tmp_path, files))
    assert (cpu.physical_cores, cpu.logical_cores) == (6, 8)
    assert (cpu.performance_cores, cpu.efficiency_cores) == (2, 4)
    assert (cpu.maximum_clock_mhz, cpu.sockets) == (5200, 1)


def test_big_little_is_told_by_capacity(tmp_path: Path) -> None:
    capacity = {
        f"sys/devices/system/cpu/cpu{n}/cpu_capacity": f"{1024 if n > 3 else 400}\n"
        for n in range(6)
    }
    parts = [("0x41", "0xd05")] * 4 + [("0x41", "0xd0b")] * 2
    files = topology([str(n) for n in range(6)]) | capacity | {"proc/cpuinfo": arm(*parts)}
    cpu = linux.cpu(write(tmp_path, files))
    assert (cpu.performance_cores, cpu.efficiency_cores) == (2, 4)
    assert cpu.brand == "Cortex-A76 and Cortex-A55"
    assert "bf16" in cpu.instruction_sets


@pytest.mark.parametrize(
    ("part", "product", "brand"),
    [
        (("0x41", "0xd0c"), "Amazon EC2 m6g.large", "AWS Graviton2"),
        (("0x41", "0xd40"), "Amazon EC2 c7g.metal", "AWS Graviton3"),
        (("0x41", "0xd4f"), "Amazon EC2 m8g.large", "AWS Graviton4"),
        (("0x41", "0xd4f"), "Amazon EC2 p6e-gb200.36xlarge", "Neoverse-V2"),
        (("0x41", "0xd08"), "Amazon EC2 a1.large", "AWS Graviton"),
        (("0x41", "0xd4f"), "Google Google Compute Engine", "Google Axion"),
        (("0x41", "0xd49"), "Microsoft Corporation Virtual Machine", "Microsoft Cobalt 100"),
        *((("0x41", "0xd4f"), board, "Neoverse-V2") for board in ("NVIDIA GH200 P4352", "X1", "")),
        *((("0x41", "0xd0c"), board, "Neoverse-N1") for board in ("Oracle VM", "Gigabyte R272")),
    ],
)
def test_arm_processors_get_a_name(part: tuple[str, str], product: str, brand: str) -> None:
    assert brand_of(parse_cpuinfo(arm(part)), product, "") == brand


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": 'name="planted"'}, {}, "podman"),
        ({"proc/1/environ": "A=b\0container=lxc\0"}, {}, "lxc"),
        ({"run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
        ({"proc/1/cgroup": "0::/kubepods/besteffort/pod12/ab\n"}, {}, "kubernetes"),
        ({"proc/self/cgroup": "4:memory:/docker/0123abcd\n"}, {}, "docker"),
        ({"proc/self/mountinfo": MOUNTED.format("containers/0a/hosts /etc/hosts")}, {}, "docker"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"APPTAINER_CONTAINER": "/home/planted/x.sif"}, "apptainer"),
        ({"proc/1/environ": "container=wsl\0", "proc/1/cgroup": "0::/init.scope\n"}, {}, None),
        ({"proc/self/mountinfo": MOUNTED.format("x /mnt")}, {}, None),
        ({}, {}, None),
    ],
)
def test_containers(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], kind: str | None
) -> None:
    assert nesting.container(write(tmp_path, files), environ) == kind


@pytest.mark.parametrize(
    ("vendor", "name", "flag", "kind"),
    [
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "hypervisor", "qemu"),
        ("Amazon EC2", "m7g.large", "", "ec2"),
        ("Amazon EC2", "m7i.metal-24xl", "", None),
        ("Microsoft Corporation", "Virtual Machine", "hypervisor", "hyper-v"),
        ("Microsoft Corporation", "Surface Laptop 5", "", None),
        ("VMware, Inc.", "VMware20,1", "hypervisor", "vmware"),
        ("innotek GmbH", "VirtualBox", "hypervisor", "virtualbox"),
        ("Apple Inc.", "Apple Virtualization Generic Platform", "", "apple"),
        ("Dell Inc.", "XPS 15 9530", "", None),
        ("", "", "hypervisor", "unknown"),
    ],
)
def test_virtual_machines(
    tmp_path: Path, vendor: str, name: str, flag: str, kind: str | None
) -> None:
    files = {
        "proc/cpuinfo": x86(extra=flag),
        "sys/class/dmi/id/sys_vendor": vendor + "\n",
        "sys/class/dmi/id/product_name": name + "\n",
        "sys/class/dmi/id/product_serial": "PLANTEDSERIAL\n",
    }
    guest = whole(write(tmp_path, files))
    assert guest.os.virtual_machine == kind
    assert ("virtual machine" in hardware_name(guest, CPU)) == (kind is not None)
    assert "PLANTED" not in guest.model_dump_json()


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("5.15.167.4-microsoft-standard-WSL2", 2),
        ("4.4.0-19041-Microsoft", 1),
        ("6.8.0-1017-azure", None),
    ],
)
def test_wsl(tmp_path: Path, release: str, version: int | None) -> None:
    files = {"proc/sys/kernel/osrelease": release, "proc/cpuinfo": x86()}
    guest = whole(write(tmp_path, files), release=release)
    assert nesting.wsl(tmp_path) == version
    assert guest.os.wsl == (version is not None)
    assert guest.os.virtual_machine == ("hyper-v" if version == 2 else None)
    assert hardware_name(guest, CPU).endswith("(WSL)") == (version is not None)


def test_the_tightest_group_counts_in_version_2(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
        "sys/fs/cgroup/a/memory.max": "1073741824\n",
        "proc/meminfo": "MemTotal:  8388608 kB\n",
        "proc/cpuinfo": x86(extra=""),
        ".dockerenv": "",
    }
    container = whole(write(tmp_path, files))
    assert (container.cpu.quota_cores, container.memory_bytes) == (1.5, 2**30)
    assert hardware_name(container, CPU).endswith("1.5 cores (container)") or (
        container.cpu.available_cores == 1
    )


@pytest.mark.parametrize(
    ("parse", "text", "parsed"),
    [
        *((cgroup.parse_cpu_max, odd, None) for odd in ("-1 100000", "", "1 0", "x y z")),
        (linux.kernel_without_names, "6.8.0-1017-aws", "6.8.0-1017-aws"),
        (linux.kernel_without_names, EL9, EL9),
        (linux.kernel_without_names, "6.11.4-301.fc41.x86_64", "6.11.4-301.fc41.x86_64"),
        (linux.kernel_without_names, "6.6.1-alices-box", "6.6.1-*"),
        (linux.kernel_without_names, "6.6.1-alice.planted.example.org", "6.6.1-*"),
        (linux.kernel_without_names, "6.6.1-alice.7-bob-generic", "6.6.1-*.7-*-generic"),
        (linux.kernel_without_names, "6.6.1-a@b.example rt", "* rt"),
        *(
            (linux.kernel_without_names, release, release)
            for release in (
                *("6.17.0-1026-nvidia", "6.17.0-1026-nvidia-64k", "5.3.18-lp152.106-default"),
                *("6.6.31+rpt-rpi-v8-16k", "5.14.0-503.el9.aarch64+64k", "6.1.21-v8+"),
            )
        ),
        (linux.kernel_without_names, "", None),
        (parse_list, "0-3,8\n", [0, 1, 2, 3, 8]),
        (parse_list, "", []),
        (parse_list, "5-3", []),
        (parse_list, "x,1", [1]),
        (parse_list, "0-999999", [*range(4096)]),
    ],
)
def test_texts_of_the_system(parse: Callable[[str], object], text: str, parsed: object) -> None:
    assert parse(text) == parsed


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("Intel\u200b Xeon\u00ad \u202e8481C\ufe0f", "Intel Xeon 8481C"),
        ("\u042d\u043b\u044c\u0431\u0440\u0443\u0441-8\u0421\u0412", "Эльбрус-8СВ"),
        ("\u092a\u0930\u092e 1", "परम 1"),
        ("\u0410MD EPYC", "unknown {0} (its name mixes letters of Cyrillic and Latin)"),
        ("\u041d200", "unknown {0} (its name has only Cyrillic letters that look like Latin ones)"),
        (
            "Ry\u01c0en",
            "unknown {0} (its name has letters of no script in everyday use (Phonetic))",
        ),
    ],
)
def test_a_strange_name_is_cleaned_or_has_its_reason(tmp_path: Path, name: str, read: str) -> None:
    files = {
        "proc/cpuinfo": x86().replace("Intel(R) Xeon(R) Gold 9999 CPU @ 2.10GHz", name),
        "sys/class/dmi/id/product_name": name,
    }
    facts = whole(write(tmp_path, files))
    assert facts.cpu.brand == read.format(f"{platform.machine()} CPU")
    assert facts.model == read.format("model")


FILES = [
    "proc/cpuinfo",
    "proc/meminfo",
    "etc/os-release",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/1/environ",
    "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/memory.max",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "sys/devices/system/cpu/cpu0/cpu_capacity",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
]
ODD = st.one_of(
    st.sampled_from(
        [
            "",
            "\x00\x1b[2J",
            "9" * 400,
            "-1",
            "model name\t: " + "x" * 5000,
            "flags: " + "avx " * 9,
            'PRETTY_NAME="Box of 5EC2E7ED-0000-4000-8000-00000000CAFE /home/planteduser/x"',
            "0::/../../../docker/5ec2e7ed5ec2e7ed5ec2e7ed5ec2e7ed5ec2e7ed",
            "planteduser@plantedhost.example.org",
        ]
    ),
    st.text(max_size=40),
)


@settings(max_examples=40)
@given(files=st.dictionaries(st.sampled_from(FILES), ODD, max_size=8))
def test_no_odd_file_raises_and_no_identifier_leaks(
    files: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("root")
    base = {
        "proc/cpuinfo": x86(),
        "etc/os-release": OS_RELEASE,
        "etc/machine-id": "plantedmachineid0123456789abcdef\n",
        "etc/hostname": "plantedhost\n",
        "sys/class/dmi/id/product_uuid": "5EC2E7ED-0000-4000-8000-00000000CAFE",
    }
    odd = {name: text.encode("utf-8", "replace").decode() for name, text in files.items()}
    read = whole(write(root, base | odd), {"HOSTNAME": "plantedhost", "USER": "planteduser"})
    text = read.model_dump_json().lower()
    assert Machine.model_validate_json(read.model_dump_json()) == read
    assert "planted" not in text
    assert "5ec2e7ed" not in text


def test_this_machine_is_read_and_tells_no_names(tmp_path: Path) -> None:
    this_machine = machine.read_machine(Home(tmp_path))
    text = this_machine.model_dump_json()
    assert Machine.model_validate_json(text) == this_machine
    for name in (platform.node(), str(Path.home()), str(tmp_path)):
        assert len(name) < 4 or name not in text
    assert len(getpass.getuser()) < 5 or getpass.getuser() not in text
    assert machine.read_machine(Home(tmp_path)).machine_hash == this_machine.machine_hash
    assert machine.read_machine(Home(tmp_path / "other")).machine_hash != this_machine.machine_hash
