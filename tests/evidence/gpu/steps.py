"""The steps of the first hour, each a list of parts that run programs of the project."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench_agent.engines import engine_named
from bench_protocol.catalogue.catalogue import CATALOGUE

from .parts import Part

PYTHON = sys.executable
NAMES = tuple(workload.name for workload in CATALOGUE)
PRECISIONS = ("float32", "tf32", "mixed_bfloat16", "mixed_float16")
# The most important first: the time may run out before the last.
LOOPS = (
    ("fashion-mlp", "float32"),
    ("mnist-cnn", "float32"),
    ("cifar100-vgg16", "tf32"),
    ("fashion-lstm", "float32"),
    ("cifar100-vgg16", "mixed_bfloat16"),
    ("mnist-dense", "float32"),
    ("fashion-convnet", "float32"),
    ("fashion-cnn", "float32"),
    ("resnet50-transfer", "tf32"),
    ("cifar100-vgg16", "mixed_float16"),
)
# Of cifar100-vgg16: about 150 GB of activations in float32. On a CPU the run must only end.
LARGE_BATCH = {"cuda": 49_152, "cpu": 512}


@dataclass(frozen=True)
class Asked:
    """What a step measures. ``seconds``: of training in each timed part. ``kept``: the folder of
    recomputations."""

    device: str
    frameworks: tuple[str, ...]
    workloads: tuple[str, ...]
    precisions: tuple[str, ...]
    nonces: int
    seconds: float
    out: Path
    kept: Path

    def cells(self) -> list[tuple[str, str]]:
        """The workloads and precisions of the loops by hand."""
        return [
            (name, precision)
            for name, precision in LOOPS
            if name in self.workloads and precision in self.precisions
        ]

    def agent(self, *words: str) -> list[str]:
        """A command of the agent."""
        return [str(Path(PYTHON).with_name("bench-agent")), *words]

    def chosen(self) -> list[str]:
        """The frameworks as options."""
        return [word for name in self.frameworks for word in ("--framework", name)]


def facts(asked: Asked) -> list[Part]:
    """What the machine is, and whether a run on device and CPU works, up to a server."""
    machine = ["nvidia-smi", "-q"] if asked.device == "cuda" else ["uname", "-a"]
    smoke = [PYTHON, "deploy/demo.py", "--once", *asked.chosen(), "--recipe", "tuned"]
    smoke += ["--device", asked.device, *(["--device", "cpu"] * (asked.device != "cpu"))]
    smoke += ["--budget-seconds", str(asked.seconds), "--wait-seconds", "3"]
    smoke += [w for n in asked.workloads if len(asked.workloads) < 3 for w in ("--workload", n)]
    folder = {"TRAINMARK_DEMO": str(asked.out / "demo")}
    return [
        Part("machine", [machine], 30, "machine.txt"),
        Part("devices", [asked.agent("devices", "--json")], 60, "devices.json"),
        Part("doctor --deep", [asked.agent("doctor", "--deep", "--json")], 180, "doctor.json"),
        Part("smoke to a server here", [smoke], 0, "smoke.txt", folder),
    ]


def readings(asked: Asked) -> list[Part]:
    """Recomputations in float64 that were not packed, then deviations from them by framework and
    precision: all at once, because nothing is timed."""
    program, shared = [PYTHON, "-m", "benchmarks.limits"], ["--nonces", str(asked.nonces)]
    shared += ["--kept", str(asked.kept)]
    made = [[*program, name, "--only", "figures", *shared] for name in asked.workloads]
    commands = []
    for framework in asked.frameworks:
        for precision in asked.precisions:
            if engine_named(framework).why_not(asked.device, "tuned", precision):  # type: ignore[arg-type]
                continue
            file = asked.out / f"readings-{framework}-{precision}.jsonl"
            command = [*program, *asked.workloads, "--only", "readings", "--form", "all", *shared]
            command += ["--framework", framework, "--device", asked.device]
            commands.append([*command, "--precision", precision, "--json", str(file)])
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return [
        Part("recomputations", made, 240, None, one),
        Part("readings", commands, 0, None, {"OMP_NUM_THREADS": "2"}),
    ]


def clock(asked: Asked) -> list[Part]:
    """Products by precision, and the stopwatch beside slope and events, a framework at a time."""
    program = [PYTHON, "-m", "tests.evidence.gpu.clock"]
    return [
        Part(
            f"products and stopwatch, {framework}",
            [
                [
                    *program,
                    framework,
                    asked.device,
                    str(asked.out / "clock.jsonl"),
                    *asked.precisions,
                ]
            ],
            240,
        )
        for framework in asked.frameworks
    ]


def loops(asked: Asked) -> list[Part]:
    """Every form of ``tuned`` beside loops by hand."""
    return [
        Part(
            f"{name} {precision}, {framework}",
            [
                [
                    *(PYTHON, "benchmarks/recipes.py", "--bare", "--forms", "--pairs", "1"),
                    *("--workloads", name, "--frameworks", framework, "--precision", precision),
                    *("--device", asked.device, "--seconds", str(asked.seconds)),
                    *("--json", str(asked.out / "loops.jsonl")),
                ]
            ],
            100,
        )
        for name, precision in asked.cells()
        for framework in asked.frameworks
    ]


def speeds(asked: Asked) -> list[Part]:
    """All workloads, measured by the agent for long enough to read energy."""
    return [
        Part(
            f"{name}, {framework}",
            [
                asked.agent(
                    *("run", "--fresh", "--preset", "quick", "--workload", name),
                    *("--framework", framework, "--device", asked.device, "--repeats", "1"),
                    *(
                        "--budget-seconds",
                        str(max(asked.seconds, 11) if asked.device == "cuda" else asked.seconds),
                    ),
                    *("--recipe", "tuned", "--wait-seconds", "2", "--json"),
                )
            ],
            75,
            f"speed-{framework}-{name}.json",
            {"BENCH_HOME": str(asked.out / "home")},
        )
        for framework in asked.frameworks
        for name in asked.workloads
    ]


def breaks(asked: Asked) -> list[Part]:
    """A batch too large, a kill and a resume, and a GPU that is hidden."""
    home = {"BENCH_HOME": str(asked.out / "home-breaks")}
    name = "cifar100-vgg16" if "cifar100-vgg16" in asked.workloads else asked.workloads[0]
    large = asked.agent("run", "--fresh", "--preset", "smoke", *asked.chosen(), "--json")
    large += [
        "--workload",
        name,
        "--recipe",
        "tuned",
        "--batch-size",
        str(LARGE_BATCH[asked.device]),
    ]
    large += ["--device", asked.device, "--budget-seconds", "1", "--wait-seconds", "1"]
    killed = [PYTHON, "-m", "tests.evidence.gpu.killed", asked.device, asked.frameworks[0]]
    killed += [asked.workloads[0], str(asked.seconds)]
    hidden = {**home, "CUDA_VISIBLE_DEVICES": ""}
    plan = asked.agent("plan", "--device", "cuda", "--framework", asked.frameworks[0])
    return [
        Part("a batch too large", [large], 180, "large.json", home, may_fail=True),
        Part("kill and resume", [killed], 200, "resumed.json", home),
        Part(
            "doctor, GPU hidden",
            [asked.agent("doctor", "--json")],
            *(60, "hidden.json", hidden),
            may_fail=True,
        ),
        Part("plan, GPU hidden", [plan], 60, None, hidden, may_fail=True),
    ]


STEPS: dict[str, Callable[[Asked], list[Part]]] = {
    "facts": facts,
    "readings": readings,
    "clock": clock,
    "loops": loops,
    "speeds": speeds,
    "breaks": breaks,
}
