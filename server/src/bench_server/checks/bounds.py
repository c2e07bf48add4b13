"""Bounds of speed: of any device, of this device, of its own matrix product in the process."""

from bench_protocol.catalogue.layers import Conv2D, Layer, PlainLayer, Residual
from bench_protocol.catalogue.matrix import PRODUCTS
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload import device_bounds
from bench_protocol.payload.hardware import hardware_name
from bench_protocol.payload.result import Gemm

from .case import Case
from .verdicts import Effect, Finding

# Winograd's F(2x2, 3x3) saves this factor of the multiplications (Lavin and Gray 2016).
WINOGRAD = 2.25
# Above the dense peak of any single device in any precision (2026), with Winograd on top.
BEYOND_ANY_DEVICE_FLOPS = WINOGRAD * 2e16
# Clocks of one card differ from the data sheet's boost clock by a few percent.
PEAK_MARGIN = 1.10
# Training over the matrix product of the same process. Honest: 0.14 to 1.69, up to 3 where other
# programs slowed the product. Faults: 3.96 to 1,515.
DOUBTFUL_PRODUCTS, IMPOSSIBLE_PRODUCTS = 4, 10


def possible_speed(case: Case) -> Finding:
    """The fastest block is below the peak of every device."""
    blocks = case.measured.blocks
    samples = blocks.steps_per_block * case.result.cell.batch_size
    fastest_ns = min(blocks.durations_ns)
    flops = case.workload.training_flops_per_sample * samples * 1e9 / fastest_ns
    return Finding(
        flops <= BEYOND_ANY_DEVICE_FLOPS,
        f"the fastest block stands for {_tera(flops)} TFLOP/s",
        {"flops": flops},
    )


def below_peak(case: Case) -> Finding:
    """A vendor's peak bounds it where there is one; 3x3 convolutions may save multiplications."""
    cell, flops = case.result.cell, case.flops
    bound = device_bounds.of_device(case.result.machine, cell.device, cell.precision)
    if bound is None:
        hardware = hardware_name(case.result.machine, cell.device)
        sentence = f"{_tera(flops)} TFLOP/s; no bound is known for {hardware}"
        return Finding(True, sentence, {"flops": flops}, checked=False)
    allowed = bound.flops * PEAK_MARGIN
    factors = f"times {PEAK_MARGIN:g} for clocks"
    numbers = {"flops": flops, "peak_flops": bound.flops}
    product_flops = _product_flops(case.measured.gemm)
    if product_flops > allowed:
        sentence = f"its matrix product runs at {_tera(product_flops)} TFLOP/s"
        numbers |= {"product_flops": product_flops, "bound_flops": allowed}
    else:
        sentence = f"{_tera(flops)} TFLOP/s"
        if has_3x3_convolutions(case.workload):
            allowed *= WINOGRAD
            factors += f" and {WINOGRAD:g} for 3x3 convolutions"
        numbers |= {"bound_flops": allowed}
    return Finding(
        max(flops, product_flops) <= allowed,
        f"{sentence}; the limit is {_tera(allowed)} TFLOP/s: {bound.words}, "
        f"{_tera(bound.flops)} TFLOP/s, {factors}",
        numbers,
    )


def has_3x3_convolutions(workload: Workload) -> bool:
    """Whether a layer, also inside a residual block, is a 3x3 convolution."""
    return any(
        isinstance(part, Conv2D) and part.kernel == 3
        for layer in workload.layers
        for part in _parts(layer)
    )


def _parts(layer: Layer) -> tuple[PlainLayer, ...]:
    return (*layer.main, *layer.shortcut) if isinstance(layer, Residual) else (layer,)


def own_product(case: Case) -> Finding:
    """FLOP/s over those of the product that the same process timed in the same number format."""
    product, wanted = case.measured.gemm, PRODUCTS[case.result.cell.precision]
    if product is None or product.precision != wanted:
        which = "no matrix product" if product is None else f"a {product.precision} product"
        sentence = f"{which} was timed, so there is no {wanted} one to compare with"
        return Finding(False, sentence, {}, checked=False)
    product_flops = _product_flops(product)
    ratio = case.flops / product_flops
    return Finding(
        ratio <= DOUBTFUL_PRODUCTS,
        f"it trains at {ratio:,.3g} times the rate of the process's own matrix product",
        {"ratio": ratio, "flops": case.flops, "product_flops": product_flops},
    )


def own_product_effect(finding: Finding) -> Effect:
    """Far above the product, the operator looks first."""
    far = finding.figures.get("ratio", 0) > IMPOSSIBLE_PRODUCTS
    return "quarantined" if far else "doubtful"


def _product_flops(product: Gemm | None) -> float:
    return 2 * product.size**3 * 1e9 / product.duration_ns if product else 0.0


def _tera(flops: float) -> str:
    return f"{flops / 1e12:,.3g}"
