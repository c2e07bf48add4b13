"""Faults of transformers and normalised networks: a witness of each is a wrong result.

Each is a small change of the recomputation, whose readings are then judged as a session's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.fakes.modern import SMALL_GPT, SMALL_RESNET
from tests.fakes.workloads import cell_of, variant

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.workloads import Adam, Workload
from bench_protocol.payload.witness import Reading, Witness, trained_tensors
from bench_protocol.recompute import (
    Job,
    Training,
    figures,
    layers,
    optimizers,
    sequences,
    training,
)
from bench_protocol.recompute.normalisation import by_batch, by_stored
from bench_protocol.training import reading
from bench_protocol.training.reading import Part, parts
from bench_protocol.training.witness_verdict import WitnessVerdict, judge

NONCE = f"{5:064x}"
Patch = pytest.MonkeyPatch
# Changes this process, and returns what is trained in place of the workload.
Plant = Callable[[Patch, Workload], Workload]


@pytest.fixture(autouse=True)
def _repeats(monkeypatch: Patch) -> None:
    """A batch of eight samples has three distinct ones."""
    monkeypatch.setattr(reading, "recomputed_samples", lambda _: 30)


def judged(workload: Workload, plant: Plant) -> WitnessVerdict:
    cell, seed = cell_of(workload), nonces.seed_of(NONCE, workload.digest)
    right = figures(workload, NONCE, cell.batch_size)
    with pytest.MonkeyPatch.context() as patch:
        trained = plant(patch, workload)
        job, done = Job(trained, cell.batch_size, seed), parts(workload, cell.batch_size, seed)
        whole = Part("short", 0, 1, done[0].per_epoch)
        start_loss = Training(job, whole, repeats=False).loss()
        readings = tuple(_reading(Training(job, part), workload) for part in done)
    told = Witness(
        step_count=9,
        counted_by="loop",
        movements=(1.0,) * len(readings[0].movements),
        start_loss=start_loss,
        readings=readings,
    )
    return judge(cell, workload, seed, told, right, settings={})


def _reading(made: Training, right: Workload) -> Reading:
    """The reading that a session sends: it has only the tensors that should be trained."""
    loss = made.train()
    moved = dict(zip(made._tensors, made.movements(), strict=True))
    shown = [moved.get((tensor.index, tensor.name), 0.0) for tensor in trained_tensors(right)]
    return Reading(loss=loss, movements=tuple(shown), durations_ns=(1,))


def optimizer(**changes: Callable[[float], float]) -> Plant:
    def plant(_: Patch, workload: Workload) -> Workload:
        settings = workload.optimizer
        update = {name: change(getattr(settings, name)) for name, change in changes.items()}
        return variant(workload, optimizer=settings.model_copy(update=update))

    return plant


def patched(module: Any, name: str, wrong: Callable[[Any], Any]) -> Plant:
    def plant(patch: Patch, workload: Workload) -> Workload:
        patch.setattr(module, name, wrong(getattr(module, name)))
        return workload

    return plant


def decay_after(right: Any) -> Any:
    def apply(update: Any, gradient: Any) -> None:
        settings, decays = update._settings, update._decays
        update._decays = False
        right(update, gradient)
        update._decays = decays
        if decays:
            update._weights *= 1 - settings.learning_rate * settings.weight_decay

    return apply


def decays_gammas(right: Any) -> Any:
    def apply(update: Any, gradient: Any) -> None:
        update._decays = True
        right(update, gradient)

    return apply


def alpha(corrected: Callable[[Any, int], tuple[float, float]]) -> Callable[[Any], Any]:
    """Adam with another factor of the update and another epsilon, from its settings and step."""

    def wrong(right: Any) -> Any:
        def change(settings: Any, gradient: Any, state: Any, step: int) -> Any:
            assert isinstance(settings, Adam)
            right(settings, gradient, state, step)
            rate, epsilon = corrected(settings, step)
            return -rate * state[0] / (np.sqrt(state[1]) + epsilon)

        return change

    return wrong


def epsilon_as_pytorch(settings: Any, step: int) -> tuple[float, float]:
    root = (1 - settings.beta_2**step) ** 0.5
    return settings.learning_rate * root / (1 - settings.beta_1**step), settings.epsilon * root


def labels_of(right: Any) -> Any:
    return lambda logits, labels: right(logits, np.roll(labels, 1, axis=-1))


def other_rows_positions(right: Any) -> Any:
    def embedding(values: Any, x: Any) -> Any:
        made, back = right(values, x)
        steps = x.shape[1]
        places = (np.arange(steps) + np.arange(len(x))[:, None]) % steps
        return made - values["positions"] + values["positions"][places], back

    return embedding


def frozen_statistics(_: Any) -> Any:
    def normalised(layer: Any, values: Any, x: Any, shares: Any) -> Any:
        y, back = by_stored(layer, values, x)
        found = by_batch(layer, values, x, shares)[1](np.zeros(x.shape), False)[1]
        moves = {name: found[name] for name in ("mean", "variance")}

        def backward(dy: Any, inputs: bool) -> Any:
            dx, gradients = back(dy, inputs)
            return dx, gradients | moves

        return y, backward

    return normalised


def unbiased(right: Any) -> Any:
    """As of the 2,048 values of a channel of cifar-resnet18's last stage."""

    def normalised(*arguments: Any) -> Any:
        y, back = right(*arguments)

        def backward(dy: Any, inputs: bool) -> Any:
            dx, found = back(dy, inputs)
            return dx, found | {"variance": found["variance"] * 2048 / 2047}

        return y, backward

    return normalised


def gammas(moves: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Tensors of one dimension that start at 1 have another gradient."""

    def wrong(right: Any) -> Any:
        def apply(update: Any, gradient: Any) -> None:
            right(update, moves(gradient) if update._weights[:1] == 1 else gradient)

        return apply

    return wrong


def trains_all(_: Patch, workload: Workload) -> Workload:
    return variant(workload, frozen_layers=0)


FROZEN_STEM = variant(SMALL_RESNET, name="frozen-stem", frozen_layers=2)
UPDATE = (optimizers.Update, "apply")
FAULTS: dict[str, tuple[Workload, Plant]] = {
    "learning rate of adam 1 % too high": (SMALL_GPT, optimizer(learning_rate=lambda x: 1.01 * x)),
    "learning rate of sgd 1 % too high": (
        SMALL_RESNET,
        optimizer(learning_rate=lambda x: 1.01 * x),
    ),
    "no decay in adam": (SMALL_GPT, optimizer(weight_decay=lambda _: 0.0)),
    "decay after the update": (SMALL_GPT, patched(*UPDATE, decay_after)),
    "gammas decay": (SMALL_GPT, patched(*UPDATE, decays_gammas)),
    "epsilon in PyTorch's place": (
        SMALL_GPT,
        patched(optimizers, "change", alpha(epsilon_as_pytorch)),
    ),
    "no bias correction": (
        SMALL_GPT,
        patched(optimizers, "change", alpha(lambda one, _: (one.learning_rate, one.epsilon))),
    ),
    "labels one token off": (SMALL_GPT, patched(training, "softmax_cross_entropy", labels_of)),
    "mask one position off": (
        SMALL_GPT,
        patched(sequences.np, "triu", lambda right: lambda ones, k: right(ones, k + 1)),
    ),
    "attention not causal": (
        SMALL_GPT,
        patched(sequences.np, "triu", lambda _: lambda ones, k: ones & False),
    ),
    "positions of another batch row": (
        SMALL_GPT,
        patched(layers, "embedding", other_rows_positions),
    ),
    "batch statistics frozen": (SMALL_RESNET, patched(layers, "by_batch", frozen_statistics)),
    "running variance unbiased": (SMALL_RESNET, patched(layers, "by_batch", unbiased)),
    "running statistics keep a tenth": (SMALL_RESNET, patched(training, "MOMENTUM", lambda _: 0.1)),
    "gammas stay in a transformer": (SMALL_GPT, patched(*UPDATE, gammas(lambda g: 0 * g))),
    "gammas stay in a normalised network": (
        SMALL_RESNET,
        patched(*UPDATE, gammas(lambda g: 0 * g)),
    ),
    "gamma trained in a frozen layer": (FROZEN_STEM, trains_all),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_wrong_result(name: str) -> None:
    workload, plant = FAULTS[name]
    verdict = judged(workload, plant)
    assert verdict.kind == "wrong_result", verdict.sentence


@pytest.mark.parametrize("workload", [SMALL_GPT, SMALL_RESNET, FROZEN_STEM], ids=lambda w: w.name)
def test_without_a_fault_it_conforms(workload: Workload) -> None:
    verdict = judged(workload, lambda _, same: same)
    assert (verdict.kind, verdict.deviation) == ("conformant", pytest.approx(0, abs=1e-9))
