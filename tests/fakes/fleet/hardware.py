"""Invented hardware, machines and environments."""

from dataclasses import dataclass

from bench_protocol.payload.machine import Cpu, Environment, Gpu, Machine, OperatingSystem


@dataclass(frozen=True)
class Kind:
    """One model of hardware: ``teraflops`` it reaches when busy, ``watts`` it draws then.
    ``cores``: GPU cores on Apple's, processor cores of a CPU. ``memory_gib``: a GPU's own."""

    name: str
    device: str
    teraflops: float
    watts: float
    cores: int | None = None
    owners: int = 1
    memory_gib: int = 0


CUDA = tuple(
    Kind(name, "cuda", teraflops, watts, owners=owners, memory_gib=memory_gib)
    for name, teraflops, watts, owners, memory_gib in (
        ("NVIDIA B200", 31, 760, 1, 180),
        ("NVIDIA H200", 26, 540, 4, 141),
        ("NVIDIA H100 80GB HBM3", 24, 560, 3, 80),
        ("NVIDIA A100-SXM4-80GB", 9.4, 330, 3, 80),
        ("NVIDIA A100-SXM4-40GB", 9.0, 310, 1, 40),
        ("NVIDIA L40S", 21, 300, 1, 48),
        ("NVIDIA L4", 7.6, 70, 2, 24),
        ("NVIDIA A10G", 8.2, 190, 1, 24),
        ("NVIDIA T4", 2.7, 68, 3, 16),
        ("NVIDIA Tesla V100-SXM2-16GB", 7.1, 250, 1, 16),
        ("NVIDIA GeForce RTX 4090", 27, 390, 3, 24),
        ("NVIDIA GeForce RTX 4080", 17, 290, 1, 16),
        ("NVIDIA GeForce RTX 4070 SUPER", 13, 205, 2, 12),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", 5.6, 90, 1, 8),
        ("NVIDIA GeForce RTX 3090", 12.8, 340, 2, 24),
        ("NVIDIA GeForce RTX 3080", 11, 310, 1, 10),
        ("NVIDIA GeForce RTX 3060", 4.8, 160, 1, 12),
        ("NVIDIA GeForce RTX 2080 Ti", 5.5, 245, 1, 11),
        ("NVIDIA GeForce RTX 2070", 3.2, 170, 1, 8),
        ("NVIDIA GeForce GTX 1080 Ti", 4.2, 230, 1, 11),
    )
)
METAL = tuple(
    Kind(name, "metal", teraflops, watts, cores, owners)
    for name, teraflops, watts, cores, owners in (
        ("Apple M1", 1.0, 14, 8, 2),
        ("Apple M1 Pro", 2.0, 24, 16, 1),
        ("Apple M1 Max", 4.0, 42, 32, 3),
        ("Apple M1 Ultra", 7.3, 80, 64, 1),
        ("Apple M2", 1.4, 15, 10, 2),
        ("Apple M2 Pro", 2.6, 27, 19, 1),
        ("Apple M2 Max", 4.1, 40, 30, 4),
        ("Apple M2 Max", 5.2, 47, 38, 1),
        ("Apple M2 Ultra", 9.8, 92, 76, 1),
        ("Apple M3", 1.6, 15, 10, 1),
        ("Apple M3 Pro", 2.8, 26, 18, 1),
        ("Apple M3 Max", 6.0, 52, 40, 2),
        ("Apple M4", 1.8, 16, 10, 3),
        ("Apple M4 Pro", 3.7, 34, 20, 1),
        ("Apple M4 Max", 7.2, 58, 40, 3),
    )
)
CPUS = tuple(
    Kind(name, "cpu", teraflops, watts, cores, owners)
    for name, teraflops, watts, cores, owners in (
        ("AMD EPYC 9654 96-Core Processor", 2.4, 340, 96, 1),
        ("AMD EPYC 7763 64-Core Processor", 1.3, 270, 64, 2),
        ("AMD Ryzen 9 7950X 16-Core Processor", 0.94, 165, 16, 1),
        ("AMD Ryzen 7 5800X 8-Core Processor", 0.42, 105, 8, 1),
        ("13th Gen Intel(R) Core(TM) i9-13900K", 0.88, 190, 24, 1),
        ("13th Gen Intel(R) Core(TM) i7-13700KF", 0.62, 150, 16, 1),
        ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", 0.21, 78, 6, 3),
        ("Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz", 0.09, 22, 4, 1),
        ("Apple M1", 0.35, 16, 8, 2),
    )
)

# The processors beside these GPUs, measured on the same machines.
BESIDE = {
    ("Apple M2 Max", 30): Kind("Apple M2 Max", "cpu", 0.66, 36, 12, 3),
    ("Apple M4 Max", 40): Kind("Apple M4 Max", "cpu", 1.1, 48, 16, 3),
}


def machine_of(kind: Kind, number: int) -> Machine:
    apple = kind.device == "metal" or kind.name.startswith("Apple")
    gpus: tuple[Gpu, ...] = ()
    if kind.device == "cuda":
        memory_bytes = kind.memory_gib * 2**30
        gpus = (
            Gpu(kind="cuda", index=0, name=kind.name, memory_bytes=memory_bytes, driver="580.95"),
        )
    elif kind.device == "metal":
        gpus = (Gpu(kind="metal", index=0, name=kind.name, cores=kind.cores, unified_memory=True),)
    cores = {"cpu": kind.cores, "cuda": 32}.get(kind.device, 12)
    brand = "AMD EPYC 9354 32-Core Processor" if kind.device == "cuda" else kind.name
    return Machine(
        machine_hash=f"{number + 1:064x}",
        model="Mac14,6" if apple else None,
        cpu=Cpu(
            brand=brand,
            architecture="arm64" if apple else "x86_64",
            physical_cores=cores,
            logical_cores=cores,
        ),
        memory_bytes=64 * 2**30,
        gpus=gpus,
        os=OperatingSystem(
            name="macos" if apple else "linux", version="15.5" if apple else "Ubuntu 24.04"
        ),
    )


def environment_of(kind: Kind, tensorflow: str = "2.18.1") -> Environment:
    packages = {
        "tensorflow": tensorflow,
        "keras": "3.15.1",
        "torch": "2.9.1",
        "jax": "0.7.2",
        "mlx": "0.30.0",
        "numpy": "2.0.2",
    }
    if kind.device == "metal":
        packages |= {"tensorflow-metal": "1.2.0"}
    libraries = {"cuda": "12.9", "cudnn": "9.14"} if kind.device == "cuda" else {"blas": "openblas"}
    return Environment(python="3.12.7", packages=packages, libraries=libraries)
