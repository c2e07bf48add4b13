"""The catalogue: one literal a workload. Adding one is adding a literal here (docs/adding.md)."""

from .errors import UnknownWorkload
from .layers import LSTM, Conv2D, Dense, Dropout, Flatten, Layer, MaxPool2D
from .workloads import Adam, DataSet, RMSprop, Workload

MNIST = DataSet(
    name="mnist", sample_shape=(28, 28, 1), classes=10, train_samples=60_000, test_samples=10_000
)
# The split of 50,000 / 10,000 / 10,000 that the multi-batch workloads use.
FASHION_MNIST_50K = DataSet(
    name="fashion-mnist",
    sample_shape=(28, 28, 1),
    classes=10,
    train_samples=50_000,
    validation_samples=10_000,
    test_samples=10_000,
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
        name="fashion-lstm",
        summary="LSTM over the 28 rows of Fashion-MNIST pictures",
        data_set=FASHION_MNIST_50K.model_copy(update={"sample_shape": (28, 28)}),
        layers=(LSTM(units=128), Dense(units=10, activation="linear")),
        optimizer=Adam(),
        batch_size=128,
        batch_sizes=FOUR_BATCH_SIZES,
        epochs=10,
    ),
)


def workload_named(name: str, catalogue: tuple[Workload, ...] = CATALOGUE) -> Workload:
    """Find a workload by name.

    Raises:
        UnknownWorkload: the catalogue has none of this name.
    """
    for workload in catalogue:
        if workload.name == name:
            return workload
    known = ", ".join(workload.name for workload in catalogue)
    raise UnknownWorkload(
        f"unknown workload {name!r}", field="workload", mend=f"choose one of: {known}"
    )
