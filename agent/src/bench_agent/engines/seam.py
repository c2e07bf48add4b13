"""The seam between the harness and a framework. The engine trains, the harness times.

An engine is a module or folder here that defines ``ENGINE``. Its import must not import the
framework, because the parent process reads names, recipes and distributions from it. Engines never
import ``time``; only :mod:`bench_agent.worker.stopwatch` reads the clock.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue.matrix import Cell, DeviceKind, Precision, Recipe
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..base.messages import FoundDevice


@dataclass(frozen=True)
class Data:
    """Samples on the host.

    ``train_x`` (samples, *sample_shape): pictures, uint8, or tokens, uint16. ``train_y``: int32
    (samples,), for tokens (samples, steps). The same for test.
    ``order`` int32 (samples,): in the first epoch, step s trains the samples
    ``order[s * batch : (s + 1) * batch]``. The recipe shuffles later epochs.
    """

    train_x: NDArray[Any]
    train_y: NDArray[np.int32]
    test_x: NDArray[Any]
    test_y: NDArray[np.int32]
    order: NDArray[np.int32]


@dataclass(frozen=True)
class Start:
    """The state from which a session continues after a restart.

    ``weights``: of all layers; the trained ones are set, running statistics too, frozen layers
    keep theirs. ``orders``: of
    the next epochs, as in :class:`Data`; the recipe shuffles the epochs after them. ``first``: the
    number of the next step in the first of them, from 0. ``dropout``: whether dropout layers drop;
    where they do not, they pass on what they are given. ``first_steps``: the optimiser's
    state is empty and its counter 0.
    """

    weights: Weights
    orders: tuple[NDArray[np.int32], ...]
    first: int
    dropout: bool
    first_steps: bool = False


class WrongResult(Exception):
    """The framework computes wrong values on this device, so nothing may be measured."""


class Session(Protocol):
    """A model being trained on one device with one recipe."""

    layers: Literal["stock", "safe"]
    """``stock``, or ``safe`` where the framework's own layers compute wrongly on this device."""
    settings: Mapping[str, str]
    """How the recipe was set up (``steps_per_call``, ``jit``): small, for people."""

    def train_block(self, steps: int) -> None:
        """Train the next full batches, across epochs. May return before the device has finished."""

    def sync(self) -> None:
        """Return when the device has finished all requested work."""

    def loss(self) -> float:
        """Mean loss of the last batch trained."""

    def parameter_count(self) -> int:
        """Number of weights as the framework counts them."""

    def peak_memory_bytes(self) -> int | None:
        """Peak device memory so far in bytes; None if the framework cannot report it."""

    def evaluate(self, x: NDArray[Any], y: NDArray[np.int32]) -> tuple[float, float]:
        """Mean loss and accuracy over the labels of some samples, with dropout off and running
        statistics."""

    def placement(self) -> str:
        """The device of the weights, as the framework names it."""

    # The witness: what the session tells about its training. Called outside of the timing.

    @property
    def counted_by(self) -> Literal["optimizer", "loop"]:
        """What :meth:`step_count` reads: the optimiser's own counter, or the training loop's."""

    def step_count(self) -> int:
        """The number of steps trained since the session was opened, and ``COUNTED_ON`` for each
        restart."""

    def trained_parameters(self) -> Iterator[NDArray[np.float32]]:
        """The trained weights, copied to the host one by one: in the order of
        :func:`bench_protocol.payload.witness.trained_tensors`, in the layouts of the seeded
        weights."""

    @property
    def repeated_epochs(self) -> int:
        """The number of epochs that were trained in the order of the epoch before; 0 where the
        framework draws the orders."""

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        """The first ``count`` batches of the first epoch as the device has them.

        They are copied there as the training loop does, and all are sent before one is read back.
        The memory of a batch is free for the next one as soon as the loop leaves it. Trains
        nothing; called before the first step.

        Returns:
            Shape (batch, *sample_shape): pictures, float32, or tokens, of an integer type.
        """

    def restart(self, start: Start) -> None:
        """Train on from other weights and in other orders; nothing else goes back, unless the start
        asks for first steps.

        Velocities and means of the optimiser's state become 0, mean squares
        :data:`bench_protocol.training.reading.MEAN_SQUARE`. All counters of steps, the optimiser's
        own too, go on by ``COUNTED_ON``; counters of epochs go on. Compiled programs, data on the
        device and random numbers stay. Only a program that contains the rates of its dropout layers
        is compiled again, from the same code.
        """

    def close(self) -> None:
        """End helper threads and free memory."""


class Products(Protocol):
    """A chain of square matrix products on the device and in the precision that were loaded."""

    def request(self, count: int) -> None:
        """Request ``count`` products, each of the last result. May return before they are done."""

    def sync(self) -> None:
        """Return when the device has finished: by the function that ends the sessions' blocks."""

    def read(self) -> float:
        """A value of the last result, copied to the host: it cannot be there before it is
        computed, whatever :meth:`sync` does."""


class Engine(Protocol):
    name: str
    import_name: str
    distributions: tuple[str, ...]
    """Distributions whose versions identify the framework, the main one first."""
    recipes: tuple[Recipe, ...]

    def why_not(self, device: DeviceKind, recipe: Recipe, precision: Precision) -> str | None:
        """Reason why this combination cannot run, or None."""

    def load(self, workload: Workload, cell: Cell) -> None:
        """Import the framework and set it up for the cell. Called first, once per process.

        Raises:
            LookupError: the framework sees no such device.
        """

    def devices(self) -> list[FoundDevice]:
        """Devices the framework sees. Imports it."""

    def libraries(self) -> dict[str, str]:
        """Libraries that the framework contains or loaded, such as ``blas``, ``cuda``."""

    def settings(self) -> dict[str, str]:
        """Active options that change speed, such as thread counts. Not environment variables."""

    def products(self, size: int) -> Products:
        """Products of square matrices of ``size`` rows."""

    def open(self, workload: Workload, cell: Cell, weights: Weights, data: Data) -> Session:
        """Build model and loop from the workload's layer list. Trains nothing yet.

        Raises:
            LookupError: the engine lacks one of the workload's layers.
            WrongResult: the device computes this workload's layers wrongly, in every form we know.
        """


@runtime_checkable
class HasForms(Protocol):
    """An engine that can run the step of some cells in several forms.

    Which one is fastest depends on the machine, so the harness measures each one there and sets
    ``form`` before it opens a session (docs/adr/0025).
    """

    form: str
    """The form of sessions that are opened from now on; the plain one at first."""

    def forms(self, cell: Cell) -> tuple[str, ...]:
        """The forms of the cell, the plain one first; empty where there is one only. Does not
        import the framework."""
