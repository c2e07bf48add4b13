"""Precisions: what each means, and which devices support it.

``float32``: products of float32 numbers, TF32 off. ``tf32``: the same with TF32 products. In mixed
precision, weights, optimiser state, softmax and loss are float32; layers compute in half precision
on half-precision copies of the weights, so gradients are applied to the float32 weights.
"""

import re
from collections.abc import Callable
from typing import Literal

from bench_protocol.catalogue.matrix import PRODUCTS, DeviceKind, Precision

from .messages import FoundDevice

ComputeType = Literal["float32", "float16", "bfloat16"]
COMPUTE_TYPES: dict[Precision, ComputeType] = {
    "float32": "float32",
    "tf32": "float32",
    "mixed_float16": "float16",
    "mixed_bfloat16": "bfloat16",
}
ALL_PRECISIONS: tuple[Precision, ...] = tuple(COMPUTE_TYPES)
# The smallest float16 is 6e-8 and gradients are often smaller: the loss is multiplied before the
# backward pass and the gradients are divided after it. A power of two rounds nothing. The scale is
# fixed: adapting it until something overflows would make steps unequal.
FLOAT16_LOSS_SCALE = 1024.0
# NVIDIA's Ampere, the first to have TF32 and bfloat16.
AMPERE = 8
# Apple's GPUs with neural accelerators, on which MLX computes float32 products in TF32 by default;
# phones' a generation later (mlx/backend/metal/device.cpp, is_nax_available).
NEURAL_GENERATION, NEURAL_PHONE_GENERATION = 17, 18
NEURAL_MACOS = (26, 2)


def loss_scale(precision: Precision) -> float:
    """Factor of the loss before the backward pass; 1 if none is needed."""
    return FLOAT16_LOSS_SCALE if precision == "mixed_float16" else 1.0


def mixed_settings(precision: Precision) -> dict[str, str]:
    """Recipe settings of a mixed cell; empty for other precisions."""
    if not precision.startswith("mixed_"):
        return {}
    scale = loss_scale(precision)
    return {"compute": PRODUCTS[precision]} | ({"loss_scale": f"{scale:g}"} if scale != 1 else {})


def why_not(device: DeviceKind, precision: Precision, *, tf32_on_metal: bool = False) -> str | None:
    """The reason why no device of a kind supports a precision, or None. ``tf32_on_metal``: whether
    the framework uses TF32 on Apple's GPUs that have it."""
    if precision == "tf32" and device == "metal" and not tf32_on_metal:
        return "this framework has no tf32 on Metal"
    if precision == "tf32" and device == "cpu":
        return "tf32 is a format of NVIDIA GPUs, and of Apple's from the M5 on"
    if precision == "mixed_float16" and device == "cpu":
        return "mixed_float16 is for GPUs: CPUs convert it at every step"
    return None


def too_old(device: FoundDevice, precision: Precision, macos: Callable[[], str]) -> str | None:
    """The reason why a GPU or its system is too old for a precision, or None. ``macos``: gives the
    version of a Mac's system.

    An NVIDIA GPU of unknown version is not too old; an Apple GPU of unknown architecture is.
    """
    if device.kind == "metal":
        return _no_neural_accelerators(device, macos()) if precision == "tf32" else None
    capability = device.compute_capability
    if precision in ("tf32", "mixed_bfloat16") and capability:
        major = int(capability.split(".")[0])
        if major < AMPERE:
            return f"{precision} needs compute capability {AMPERE}.0, this GPU has {capability}"
    return None


def _no_neural_accelerators(device: FoundDevice, macos: str) -> str | None:
    architecture = device.architecture or "unknown"
    name = re.fullmatch(r"applegpu_g([0-9]{1,3})([a-z])", architecture)
    least = NEURAL_PHONE_GENERATION if name and name[2] == "p" else NEURAL_GENERATION
    if name is None or int(name[1]) < least:
        return f"tf32 needs neural accelerators (M5 or newer), this GPU is {architecture}"
    version = tuple(int(part) for part in re.findall(r"[0-9]+", macos)[:2])
    if version < NEURAL_MACOS:
        return f"tf32 on Metal needs macOS 26.2, this is {macos or 'unknown'}"
    return None
