"""What to say of a name that nothing has: the one that was probably meant, and all there are."""

from collections.abc import Iterable
from difflib import get_close_matches

# Other words for our names, as people type them.
OTHER_WORDS = {
    "pytorch": "torch",
    "tf": "tensorflow",
    "keras": "tensorflow",
    "gpu": ("cuda", "metal"),
    "mps": "metal",
    "bf16": "mixed_bfloat16",
    "bfloat16": "mixed_bfloat16",
    "fp16": "mixed_float16",
    "float16": "mixed_float16",
    "fp32": "float32",
    "mnist": "mnist-cnn",
    "vgg16": "cifar100-vgg16",
    "resnet50": "resnet50-transfer",
}


def unknown(what: str, name: str, names: Iterable[str]) -> str:
    """``unknown framework 'pytorch'; did you mean torch? There are: jax, mlx, torch``."""
    known = list(names)
    other = OTHER_WORDS.get(name.lower(), ())
    words = (other,) if isinstance(other, str) else other
    meant = next((word for word in words if word in known), None)
    meant = meant or next(iter(get_close_matches(name.lower(), known, n=1, cutoff=0.7)), None)
    guess = f"; did you mean {meant}? There are: " if meant else "; choose one of: "
    return f"unknown {what} {name!r}{guess}{', '.join(known)}"
