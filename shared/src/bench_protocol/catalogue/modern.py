"""The workloads people ask about today, one literal each."""

from typing import Literal

from .layers import (
    BatchNorm,
    CausalAttention,
    Conv2D,
    Dense,
    Embedding,
    GlobalAveragePool2D,
    Layer,
    LayerNorm,
    PlainLayer,
    Residual,
)
from .workloads import SGD, Adam, DataSet, Workload

# Tiny Shakespeare has as many characters for training and validation; here in sequences of 256.
CHARACTERS = DataSet(
    name="characters",
    sample_shape=(256,),
    classes=65,
    train_samples=3_920,
    test_samples=432,
    tokens=True,
)
CIFAR_10 = DataSet(
    name="cifar-10",
    sample_shape=(32, 32, 3),
    classes=10,
    train_samples=50_000,
    test_samples=10_000,
)


def transformer_blocks(blocks: int, units: int, heads: int) -> tuple[Residual, ...]:
    """Blocks of GPT-2 without biases: attention, then two dense layers, each after a LayerNorm."""
    attention = Residual(main=(LayerNorm(), CausalAttention(heads=heads)), activation="linear")
    dense = Residual(
        main=(
            LayerNorm(),
            Dense(units=4 * units, activation="gelu", bias=False),
            Dense(units=units, activation="linear", bias=False),
        ),
        activation="linear",
    )
    return (attention, dense) * blocks


def _normalised(
    filters: int, kernel: int, stride: int = 1, last: bool = False
) -> tuple[PlainLayer, ...]:
    """A convolution without bias, which the normalisation by the batch would take away."""
    activation: Literal["linear", "relu"] = "linear" if last else "relu"
    # With a last gamma of 1 and SGD at 0.1 a flipped ReLU grows a thousandfold in a step.
    gamma = 0.25 if last and kernel == 3 else 1.0
    return (
        Conv2D(
            filters=filters,
            kernel=kernel,
            stride=stride,
            padding="centred",
            activation="linear",
            bias=False,
        ),
        BatchNorm(gamma=gamma, epsilon=1e-5, activation=activation, statistics="batch"),
    )


def resnet_stage(blocks: int, filters: int, stride: int) -> tuple[Residual, ...]:
    """Basic blocks; where the first one changes the size, its shortcut has a convolution."""

    def main(stride: int) -> tuple[PlainLayer, ...]:
        return *_normalised(filters, 3, stride), *_normalised(filters, 3, last=True)

    shortcut = _normalised(filters, 1, stride, last=True) if stride > 1 else ()
    first = Residual(main=main(stride), shortcut=shortcut)
    return (first, *(Residual(main=main(1)),) * (blocks - 1))


def resnet_stem(filters: int) -> tuple[Layer, ...]:
    return _normalised(filters, 3)


MODERN: tuple[Workload, ...] = (
    Workload(
        name="gpt-char",
        summary="a GPT of characters, as nanoGPT's train_shakespeare_char",
        data_set=CHARACTERS,
        layers=(
            Embedding(vocabulary=65, units=384),
            *transformer_blocks(6, units=384, heads=6),
            LayerNorm(),
            Dense(units=65, activation="linear", bias=False),
        ),
        optimizer=Adam(learning_rate=1e-3, beta_2=0.99, weight_decay=0.1),
        batch_size=8,
        batch_sizes=(8, 64),
        epochs=5,
    ),
    Workload(
        name="cifar-resnet18",
        summary="ResNet-18 on CIFAR-10, all of it trained",
        data_set=CIFAR_10,
        layers=(
            *resnet_stem(64),
            *resnet_stage(2, 64, stride=1),
            *resnet_stage(2, 128, stride=2),
            *resnet_stage(2, 256, stride=2),
            *resnet_stage(2, 512, stride=2),
            GlobalAveragePool2D(),
            Dense(units=10, activation="linear"),
        ),
        optimizer=SGD(learning_rate=0.02, weight_decay=5e-4),
        batch_size=128,
        batch_sizes=(128,),
        epochs=30,
    ),
)
