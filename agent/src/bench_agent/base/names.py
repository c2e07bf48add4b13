"""Messages about unknown names: the name that was probably meant, and all known names."""

from functools import partial

from bench_protocol.base import unknown_names

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
    "cifar100": ("cifar-100", "cifar100-vgg16"),
    "fashion": "fashion-mnist",
    "k8s": "kubernetes",
    "synthetic": "generated",
}
unknown = partial(unknown_names.unknown, other_words=OTHER_WORDS)
