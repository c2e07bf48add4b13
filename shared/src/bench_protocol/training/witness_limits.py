"""Limits of the witness: how far losses and movements may be from their recomputation.

They are finite for every device and precision. Where nothing was measured they are derived from the
precision's unit roundoff, and ``source`` says so.
"""

from dataclasses import dataclass

from ..catalogue.layers import Conv2D, Residual
from ..catalogue.matrix import DeviceKind, Precision
from ..catalogue.workloads import Workload

# Up to this step rounding errors have hardly grown.
FEW_STEPS = 4


@dataclass(frozen=True)
class Limits:
    """Largest deviations of a loss after one step, after few and after many, and of movements.

    All are relative. ``source``: the origin of the limits, formatted to end a sentence.
    """

    first: float
    few: float
    many: float
    few_moved: float
    many_moved: float
    source: str

    def of_loss(self, step: int) -> float:
        """The limit of the loss of a step, counted from 1."""
        if step == 1:
            return self.first
        return self.few if step <= FEW_STEPS else self.many

    def of_movement(self, steps: int) -> float:
        """The limit of a movement after as many steps."""
        return self.few_moved if steps <= FEW_STEPS else self.many_moved


# Measured with TensorFlow, MLX, JAX and PyTorch on x86-64, steps 1, 24 and 64 (1 and 2 where a step
# is large); the third argument of the key: whether convolutions are trained. Each limit is two to
# four times the largest deviation seen, or more where few sessions were seen:
# float32, none trained (36 sessions): losses 1.8e-7, 6.3e-8, 1.3e-5; movements 1.5e-6 (9 sessions).
# float32, trained (32): 3.4e-7, -, 4.7e-2; movements 5.2e-2 (8). Where rounding flips a ReLU
# or a maximum, the gradient changes; that is why few and many steps differ so much.
# mixed_bfloat16, none trained (8): 4.3e-4, -, 2.1e-1; movements 6.6e-3 (2).
# mixed_bfloat16, trained (8): 1.8e-5, -, 1.1e-1; movements 1.0e-1 (2).
# Second readings, tuned, after 64 steps or 3: movements 5.4e-7 without trained convolutions in
# float32 (mnist-dense and resnet50-transfer, four frameworks, n = 8), 1.6e-1 with them (a bias of
# mnist-cnn, n = 4), in mixed_bfloat16 2.4e-2 (mnist-dense, n = 14) and 1.2e-1 (mnist-cnn, n = 2).
# mnist-dense, PyTorch, float32, other seeds (n = 800): rounding decides a ReLU in some sessions;
# losses up to 2.4e-4 and movements up to 2.4e-3. So a loss after many steps may be 1e-3 off, and a
# movement as far as a short trace's (trace_limits.KINKED_MOVED, docs/adr/0026).
# Made by: python -m benchmarks.limits WORKLOAD --only sessions.
# With Dropout all sessions, 36 in float32 and 4 in mixed_bfloat16, lay in the band itself.
# A dash: not measured; there the limit is at least that of the conformance traces.
MEASURED: dict[tuple[DeviceKind, Precision, bool], Limits] = {
    ("cpu", "float32", False): Limits(1e-6, 1e-5, 1e-3, 5e-3, 5e-3, "measured, n = 836"),
    ("cpu", "float32", True): Limits(1e-6, 1e-3, 1.5e-1, 5e-2, 5e-1, "measured, n = 32"),
    ("cpu", "mixed_bfloat16", False): Limits(1.5e-3, 1e-1, 6e-1, 1e-1, 1e-1, "measured, n = 8"),
    ("cpu", "mixed_bfloat16", True): Limits(1.5e-3, 1e-1, 6e-1, 5e-1, 5e-1, "measured, n = 8"),
}
# Half the distance between 1 and the next number.
UNIT_ROUNDOFF: dict[Precision, float] = {
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "mixed_float16": 2.0**-11,
    "mixed_bfloat16": 2.0**-8,
}
# A GPU sums in another order and may use Winograd's products, which lose about two bits.
OTHER_DEVICE = 4
# Deviations in units of roundoff. bfloat16 on CPUs: 0.11 after one step, its limit at four is 26.
FIRST_ROUNDOFFS, FEW_ROUNDOFFS = 1, 26
DERIVED_MANY, DERIVED_MOVEMENT = 0.6, 0.5


def limits(workload: Workload, device: DeviceKind, precision: Precision) -> Limits:
    """Measured limits, or derived ones."""
    trained = workload.layers[workload.frozen_layers :]
    convolves = any(isinstance(layer, Conv2D | Residual) for layer in trained)
    if measured := MEASURED.get((device, precision, convolves)):
        return measured
    if precision == "float32":
        base = MEASURED["cpu", "float32", convolves]
        return Limits(
            OTHER_DEVICE * base.first,
            OTHER_DEVICE * base.few,
            OTHER_DEVICE * base.many,
            min(DERIVED_MOVEMENT, OTHER_DEVICE * base.few_moved),
            min(DERIVED_MOVEMENT, OTHER_DEVICE * base.many_moved),
            f"not measured on {device}: {OTHER_DEVICE} times the limit of a CPU",
        )
    unit = UNIT_ROUNDOFF[precision]
    return Limits(
        FIRST_ROUNDOFFS * unit,
        FEW_ROUNDOFFS * unit,
        DERIVED_MANY,
        DERIVED_MOVEMENT,
        DERIVED_MOVEMENT,
        f"not measured in {precision} on {device}: derived from its unit roundoff of {unit:.1e}",
    )
