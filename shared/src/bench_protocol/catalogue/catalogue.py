"""The catalogue of workloads: one literal for each. A new workload is a new literal
(docs/adding.md)."""

from typing import Literal

from ..base.errors import UnknownWorkload
from .layers import (
    LSTM,
    BatchNorm,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    MaxPool2D,
    PlainLayer,
    Residual,
    ZeroPad2D,
)
from .modern import MODERN
from .workloads import Adam, DataSet, RMSprop, Workload

# Numbers of patterns: accuracy on generated data ends near 0.85 (docs/methodology.md, Accuracy).
MNIST = DataSet(
    name="mnist",
    sample_shape=(28, 28, 1),
    classes=10,
    train_samples=60_000,
    test_samples=10_000,
    patterns=2_048,
)
FASHION_MNIST = MNIST.model_copy(update={"name": "fashion-mnist", "patterns": 4_096})
# The split of 50,000 / 10,000 / 10,000 that the multi-batch workloads use.
FASHION_MNIST_50K = FASHION_MNIST.model_copy(
    update={"train_samples": 50_000, "validation_samples": 10_000}
)
SMALL_CNN: tuple[Layer, ...] = (
    Conv2D(filters=32, kernel=3, padding="valid"),
    MaxPool2D(),
    Conv2D(filters=64, kernel=3, padding="valid"),
    MaxPool2D(),
    Conv2D(filters=64, kernel=3, padding="valid"),
    Flatten(),
    Dense(units=64),
    Dense(units=10, activation="linear"),
)
CIFAR_100 = DataSet(
    name="cifar-100",
    sample_shape=(32, 32, 3),
    classes=100,
    train_samples=50_000,
    test_samples=10_000,
)
RANDOM_PICTURES = DataSet(
    name="random-pictures",
    sample_shape=(224, 224, 3),
    classes=10,
    train_samples=1_000,
    test_samples=100,
    noise=True,
)


def _vgg_stage(convolutions: int, filters: int) -> tuple[Layer, ...]:
    convolution = Conv2D(filters=filters, kernel=3, padding="same")
    return (*(convolution,) * convolutions, MaxPool2D())


def _normalised(
    filters: int, kernel: int, stride: int = 1, last: bool = False
) -> tuple[PlainLayer, ...]:
    """Convolution and normalisation; the last ones of a branch have no activation."""
    padding: Literal["same", "valid"] = "same" if kernel == 3 else "valid"
    return (
        Conv2D(filters=filters, kernel=kernel, stride=stride, padding=padding, activation="linear"),
        # A small last gamma keeps the sums of sixteen blocks finite (Goyal et al. 2017, 5.1).
        BatchNorm(gamma=0.25, activation="linear") if last else BatchNorm(),
    )


def _resnet_stage(blocks: int, filters: int, stride: int) -> tuple[Layer, ...]:
    """Bottleneck blocks; the first one changes the size, so its shortcut has a convolution."""

    def main(stride: int) -> tuple[PlainLayer, ...]:
        return (
            *_normalised(filters, 1, stride),
            *_normalised(filters, 3),
            *_normalised(4 * filters, 1, last=True),
        )

    first = Residual(
        main=main(stride),
        shortcut=(
            Conv2D(
                filters=4 * filters, kernel=1, stride=stride, padding="valid", activation="linear"
            ),
            # Halved four times, the pooled features stay small enough for SGD on the last layer.
            BatchNorm(gamma=0.5, activation="linear"),
        ),
    )
    return (first, *(Residual(main=main(1)),) * (blocks - 1))


# Keras' ResNet50 without its top (He et al. 2015, table 1).
RESNET50: tuple[Layer, ...] = (
    ZeroPad2D(size=3),
    *_normalised(64, 7, stride=2),
    ZeroPad2D(size=1),
    MaxPool2D(size=3, stride=2),
    *_resnet_stage(3, 64, stride=1),
    *_resnet_stage(4, 128, stride=2),
    *_resnet_stage(6, 256, stride=2),
    *_resnet_stage(3, 512, stride=2),
    GlobalAveragePool2D(),
)
FOUR_BATCH_SIZES = (32, 128, 512, 1024)

CATALOGUE: tuple[Workload, ...] = (
    Workload(
        name="mnist-cnn",
        summary="small convolutional network on MNIST",
        data_set=MNIST,
        layers=SMALL_CNN,
        optimizer=RMSprop(),
        batch_size=64,
        batch_sizes=(64, 256),
        epochs=10,
    ),
    Workload(
        name="fashion-cnn",
        summary="convolutional network with even kernels and dropout on Fashion-MNIST",
        data_set=FASHION_MNIST,
        layers=(
            Conv2D(filters=64, kernel=2, padding="same"),
            MaxPool2D(),
            Dropout(rate=0.3),
            Conv2D(filters=32, kernel=2, padding="same"),
            MaxPool2D(),
            Dropout(rate=0.3),
            Flatten(),
            Dense(units=256),
            Dropout(rate=0.5),
            Dense(units=10, activation="linear"),
        ),
        optimizer=RMSprop(),
        batch_size=64,
        batch_sizes=(64, 256),
        epochs=10,
    ),
    Workload(
        name="cifar100-vgg16",
        summary="VGG16 on CIFAR-100",
        data_set=CIFAR_100,
        layers=(
            *_vgg_stage(2, 64),
            *_vgg_stage(2, 128),
            *_vgg_stage(3, 256),
            *_vgg_stage(3, 512),
            *_vgg_stage(3, 512),
            Dropout(rate=0.3),
            Flatten(),
            Dense(units=4096),
            Dense(units=4096),
            Dense(units=100, activation="linear"),
        ),
        optimizer=Adam(learning_rate=1e-4),
        batch_size=128,
        batch_sizes=(128, 256),
        epochs=50,
    ),
    Workload(
        name="fashion-mlp",
        summary="two hidden dense layers with dropout on Fashion-MNIST",
        data_set=FASHION_MNIST_50K,
        layers=(
            Flatten(),
            Dense(units=512),
            Dropout(rate=0.2),
            Dense(units=64),
            Dense(units=10, activation="linear"),
        ),
        optimizer=Adam(),
        batch_size=128,
        batch_sizes=FOUR_BATCH_SIZES,
        epochs=10,
    ),
    Workload(
        name="fashion-convnet",
        summary="small convolutional network on Fashion-MNIST",
        data_set=FASHION_MNIST_50K,
        layers=SMALL_CNN,
        optimizer=Adam(),
        batch_size=128,
        batch_sizes=FOUR_BATCH_SIZES,
        epochs=10,
    ),
    Workload(
        name="fashion-lstm",
        summary="LSTM over the 28 rows of Fashion-MNIST pictures",
        data_set=FASHION_MNIST_50K.model_copy(update={"sample_shape": (28, 28)}),
        layers=(LSTM(units=128), Dense(units=10, activation="linear")),
        optimizer=Adam(),
        batch_size=128,
        batch_sizes=FOUR_BATCH_SIZES,
        epochs=10,
    ),
    Workload(
        name="mnist-dense",
        summary="one hidden dense layer on MNIST",
        data_set=MNIST,
        layers=(Flatten(), Dense(units=128), Dense(units=10, activation="linear")),
        optimizer=Adam(),
        batch_size=32,
        epochs=5,
    ),
    Workload(
        name="resnet50-transfer",
        summary="a new last layer on a frozen ResNet50, random pictures",
        data_set=RANDOM_PICTURES,
        layers=(*RESNET50, Dense(units=10, activation="linear")),
        frozen_layers=len(RESNET50),
        optimizer=Adam(),
        batch_size=32,
        epochs=2,
    ),
    *MODERN,
)

# What ``bench-agent run`` measures by default, and a score needs: each trains another kind of
# layers (docs/methodology.md, Score).
REPRESENTATIVE = ("mnist-cnn", "fashion-lstm", "cifar100-vgg16", "cifar-resnet18", "gpt-char")
# Like one of those, with steps so short that Python's share is much of them.
SHORT_STEPS = ("mnist-dense", "fashion-mlp", "fashion-cnn", "fashion-convnet")


def workload_named(name: str) -> Workload:
    """Find a workload by its name.

    Raises:
        UnknownWorkload: the catalogue has none of this name.
    """
    for workload in CATALOGUE:
        if workload.name == name:
            return workload
    names = ", ".join(workload.name for workload in CATALOGUE)
    raise UnknownWorkload(
        f"unknown workload {name!r}", field="workload", hint=f"choose one of: {names}"
    )
