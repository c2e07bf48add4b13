"""The self-test: measure whether a device's synchronisation waits, and what it computes.

Matrix products are timed as blocks are, by the engine's own synchronisation. Numbers and copies
come from real sessions, whose weights are chosen so that the loss tells what a layer rounded.
"""

from collections.abc import Iterator
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue.layers import Conv2D, Dense, Flatten
from bench_protocol.catalogue.matrix import Cell, Recipe
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import SGD, DataSet, Workload

from ..base.messages import SelfTestTask
from ..base.self_test import MULTIPLES, TESTED_BITS, TINY, Figures, Numbers, Waiting, kept_bits
from ..engines.common import as_inputs
from ..engines.seam import Data, Engine, Products, Session
from .steps_after import left_after
from .witness import Timed

SIZES = (512, 1024, 2048, 4096)
# Times far above the cost of a call and of a reading of the clock.
PRODUCT_NS = 1_000_000
READING_NS = 10_000_000
MOST_PRODUCTS = 64
# Other programs only make a reading longer, so the least time of some tries counts. There are
# more tries where these do not agree.
LEAST_TRIES, MOST_TRIES = 5, 40
# Products that the device works on while batches are sent to it, as in a training loop.
PRODUCTS_AHEAD = 16
BATCH, BATCHES = 64, 16
SAMPLES = 32  # of an evaluation

# Class 0 has the logit 0. Then follow one class for each tested bit of the convolution, one for
# each of the dense layer, and one for the tiny value.
PROBES = len(TESTED_BITS)
CONVOLUTION, DENSE, TINY_CLASS = 1, 1 + PROBES, 1 + 2 * PROBES
CLASSES = 2 + 2 * PROBES
# Channels of the pictures and of the convolution, and those that are one everywhere.
CHANNELS = 64
ONE, ALSO_ONE = PROBES, PROBES + 1
# Layers as large as real ones: for tiny ones a library may choose another kernel.
WORKLOAD = Workload(
    name="self-test",
    data_set=DataSet(
        name="self-test",
        sample_shape=(8, 8, CHANNELS),
        classes=CLASSES,
        train_samples=BATCH * BATCHES,
        test_samples=1,
    ),
    layers=(
        Conv2D(filters=CHANNELS, kernel=3, padding="same"),
        Flatten(),
        Dense(units=256),
        Dense(units=CLASSES, activation="linear"),
    ),
    optimizer=SGD(learning_rate=0.01, momentum=0.0),
    batch_size=BATCH,
    epochs=1,
)

# Dense layers only. The input is all ones, like the convolution's last channels.
DENSE_ONLY = WORKLOAD.model_copy(update={"layers": WORKLOAD.layers[1:]})


def measure(engine: Engine, task: SelfTestTask, timed: Timed) -> Figures:
    """Load the engine for the task's precision and test it; ``timed`` returns nanoseconds."""
    cells = [_cell(task, recipe) for recipe in task.recipes]
    engine.load(WORKLOAD, cells[0])
    products, size, count = _long_enough(engine, timed)
    waiting = _waiting(products, size, count, timed)
    numbers = tuple(_numbers(engine, cell, products) for cell in cells)
    return Figures(waiting=waiting, numbers=numbers)


def _cell(task: SelfTestTask, recipe: Recipe) -> Cell:
    return Cell(
        workload=WORKLOAD.name,
        workload_digest=WORKLOAD.digest,
        framework=task.framework,
        device=task.device,
        recipe=recipe,
        batch_size=BATCH,
        precision=task.precision,
        data="generated",
    )


def _long_enough(engine: Engine, timed: Timed) -> tuple[Products, int, int]:
    """Products, their size, and how many fill a reading. A value that is read ends these times, so
    a synchronisation that does not wait changes nothing."""

    def done_ns(products: Products, count: int) -> int:
        def work() -> None:
            products.request(count)
            products.read()

        return min(timed(work) for _ in range(3))

    for size in SIZES:
        products = engine.products(size)
        if done_ns(products, 1) >= PRODUCT_NS:
            break
    count = 1
    while count < MOST_PRODUCTS and done_ns(products, count) < READING_NS:
        count *= 2
    return products, size, count


def _waiting(products: Products, size: int, count: int, timed: Timed) -> Waiting:
    taken: list[list[int]] = [[] for _ in MULTIPLES]
    left: list[list[float]] = [[] for _ in MULTIPLES]
    while True:
        for number, multiple in enumerate(MULTIPLES):

            def work(number_of_products: int = count * multiple) -> None:
                products.request(number_of_products)
                products.sync()

            took_ns, left_ns = left_after(work, products.read, timed)
            taken[number].append(took_ns)
            left[number].append(left_ns / (took_ns + left_ns))
        one, two, four = map(min, taken)
        tries = len(taken[0])
        waiting = Waiting(
            size=size,
            products=count,
            durations_ns=(one, two, four),
            left=max(map(median, left)),
            tries=tries,
        )
        if tries >= (LEAST_TRIES if waiting.waits else MOST_TRIES):
            return waiting


def _numbers(engine: Engine, cell: Cell, products: Products) -> Numbers:
    data, weights, convolves = _data(), _weights(), True
    try:
        session = engine.open(WORKLOAD, cell, weights, data)
    except LookupError:  # it has no convolutions
        session, convolves = engine.open(DENSE_ONLY, cell, weights[1:], data), False
    try:
        # Copies that wait behind other work show whether they need their source any longer.
        products.request(PRODUCTS_AHEAD)
        copied = session.copied_batches(BATCHES)
        logits = _logits(session)
    finally:
        session.close()
    return Numbers(
        recipe=cell.recipe,
        convolution_bits=(
            kept_bits(logits[CONVOLUTION : CONVOLUTION + PROBES]) if convolves else None
        ),
        dense_bits=kept_bits(logits[DENSE : DENSE + PROBES]),
        keeps_tiny=abs(logits[TINY_CLASS] - TINY) < TINY / 2,
        copied=_same(copied, _batches(data)),
    )


def _data() -> Data:
    random = np.random.default_rng(0)
    count, shape = WORKLOAD.data_set.train_samples, WORKLOAD.data_set.sample_shape
    x = random.integers(0, 256, (count, *shape), np.uint8)
    y = random.integers(0, CLASSES, count, np.int32)
    return Data(x, y, x[:1], y[:1], random.permutation(count).astype(np.int32))


def _batches(data: Data) -> Iterator[NDArray[np.float32]]:
    for rows in np.split(data.order, BATCHES):
        yield as_inputs(data.train_x[rows])


def _same(copied: list[NDArray[np.float32]], sent: Iterator[NDArray[np.float32]]) -> bool:
    pairs = zip(copied, sent, strict=True)
    return all(np.ascontiguousarray(a).tobytes() == b.tobytes() for a, b in pairs)


def _weights() -> Weights:
    """Weights under which the logits of pictures of ones are 2^-k, if 1 + 2^-k is kept.

    A probe multiplies one by 1 + 2^-k and another one by -1. The convolution's probes are its first
    channels; two more channels are one, for the probes of the dense layer. Later layers multiply by
    one. All of it is exact in every precision that keeps 1 + 2^-k.
    """
    convolution, _, dense, last = (
        {name: np.zeros(shape, np.float32) for name, shape in layer.weight_shapes(inputs).items()}
        for layer, inputs in zip(WORKLOAD.layers, WORKLOAD.shapes[:-1], strict=True)
    )
    middle = convolution["kernel"][1, 1]  # (in, out)
    hidden = dense["kernel"]  # (positions and channels, units); unit u feeds class u
    for number, bits in enumerate(TESTED_BITS):
        middle[:2, number] = 1 + 2.0**-bits, -1
        hidden[number, CONVOLUTION + number] = 1
        hidden[[ONE, ALSO_ONE], DENSE + number] = 1 + 2.0**-bits, -1
    middle[0, [ONE, ALSO_ONE]] = 1
    hidden[ONE, TINY_CLASS] = TINY
    for number in range(1, CLASSES):
        last["kernel"][number, number] = 1
    return [convolution, {}, dense, last]


def _logits(session: Session) -> list[float]:
    """The logits of pictures of ones, by the session's evaluation.

    The loss of class c is log(sum(exp(logits))) - logits[c], and the logit of class 0 is 0.
    """
    ones = np.full((SAMPLES, *WORKLOAD.data_set.sample_shape), 255, np.uint8)
    losses = [session.evaluate(ones, np.full(SAMPLES, c, np.int32))[0] for c in range(CLASSES)]
    return [losses[0] - loss for loss in losses]
