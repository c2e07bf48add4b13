"""Faults of the timed session that come and go: each has a key, which says when it is there, and a
kind, which says what is wrong. A *slip* needs no intent; a *cheat* knows when it is read.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from ..fault import KNOWS_WHEN, Fault, Plant, Setup

Train = Callable[[int], None]
Wrong = Callable[[Any], Train]
"""Prepares a session; the result trains a number of steps wrongly."""


@dataclass
class Seen:
    """What a key may look at: the session, the steps of the call, whether the session was read, and
    the steps trained by the timing's calls."""

    session: Any
    steps: int
    read: bool
    trained: int


Key = Callable[[Seen], bool]
KEYS: dict[str, tuple[str, Key]] = {
    "step": ("after step 64", lambda seen: seen.session.step_count() > 64),
    "late": ("after step 500", lambda seen: seen.session.step_count() > 500),
    "call": ("in calls above 8 steps", lambda seen: seen.steps > 8),
    "latch": ("once 64 steps are trained, for good", lambda seen: seen.trained > 64),
    "unread": ("until it is read", lambda seen: not seen.read and seen.trained > 16),
}


def planted(key: Key, wrong: Wrong) -> Plant:
    def change(session: Any) -> None:
        train, restart = session.train_block, session.restart
        seen = Seen(session, 0, False, 0)
        wrongly = wrong(session)

        def block(steps: int) -> None:
            seen.steps = steps
            (wrongly if key(seen) else train)(steps)
            seen.trained += steps

        def restarted(start: Any) -> None:
            seen.read = True
            restart(start)

        session.train_block, session.restart = block, restarted

    return lambda here: here.sessions(change)


def skip(session: Any, steps: int) -> None:
    """Count steps, and leave their batches out, without training them."""
    framework = type(session).__module__.split(".")[-2]
    session._trained += steps
    session._position = (session._position + steps) % session._steps_per_epoch
    if framework == "mlx":
        session._optimizer.state["step"] = session._optimizer.step + steps
    elif framework == "torch":
        for state in session._optimizer.state.values():
            if "step" in state:
                state["step"] += steps
        if hasattr(session._optimizer, "step_count"):
            session._optimizer.step_count += steps


def share_of_calls(numerator: int, denominator: int) -> Wrong:
    """Of each call that share is trained; all is counted."""

    def of(session: Any) -> Train:
        train = session.train_block

        def wrongly(steps: int) -> None:
            done = steps * numerator // denominator
            if done:
                train(done)
            skip(session, steps - done)

        return wrongly

    return of


def every_seventh_left_out(session: Any) -> Train:
    train, turn = session.train_block, count(1)

    def wrongly(steps: int) -> None:
        for _ in range(steps):
            if next(turn) % 7:
                train(1)
            else:
                skip(session, 1)

    return wrongly


def remainder_left_out(session: Any) -> Train:
    """What does not fill an unrolled body of 64 steps; of a shorter call the last step."""
    train = session.train_block

    def wrongly(steps: int) -> None:
        done = steps - (steps % 64 or 64) if steps > 64 else steps - 1
        if done:
            train(done)
        skip(session, steps - done)

    return wrongly


def sleeps(share: float) -> Wrong:
    """Nothing is trained; a step takes that share of its honest time."""

    def of(session: Any) -> Train:
        train, honest_ns = session.train_block, [0.0]

        def wrongly(steps: int) -> None:
            if not honest_ns[0]:
                began = time.perf_counter_ns()
                train(steps)
                session.sync()
                honest_ns[0] = (time.perf_counter_ns() - began) / steps
                return
            time.sleep(steps * share * honest_ns[0] / 1e9)
            skip(session, steps)

        return wrongly

    return of


def while_changed(change: Callable[[Any], Callable[[], None]]) -> Wrong:
    """``change`` changes the session and returns what undoes it."""

    def of(session: Any) -> Train:
        train = session.train_block

        def wrongly(steps: int) -> None:
            undo = change(session)
            try:
                train(steps)
            finally:
                undo()

        return wrongly

    return of


def attribute(name: str, value: Callable[[Any], Any]) -> Wrong:
    """While it is wrong, an attribute of the session has another value."""

    def change(session: Any) -> Callable[[], None]:
        right = getattr(session, name)
        setattr(session, name, value(session))
        return lambda: setattr(session, name, right)

    return while_changed(change)


def smoothed(session: Any) -> Any:
    from torch.nn import functional

    return lambda x, y: functional.cross_entropy(session._logits(x), y, label_smoothing=0.1)


def clipped(session: Any) -> Any:
    """Gradients are clipped to a norm of 0.05."""
    import torch

    right = session._backward

    def backward(loss: Any) -> None:
        right(loss)
        torch.nn.utils.clip_grad_norm_(session._trained_values(), 0.05)

    return backward


def first_frozen(session: Any) -> Any:
    right = session._backward

    def backward(loss: Any) -> None:
        right(loss)
        for values in session._trained_values()[:2]:
            values.grad = values.grad * 0

    return backward


def gradient_reused(session: Any) -> Any:
    """Every second step has the gradient of the step before."""
    right, turn, kept = session._backward, count(), []

    def backward(loss: Any) -> None:
        values = session._trained_values()
        if next(turn) % 2 == 0 or not kept:
            right(loss)
            kept[:] = [one.grad.detach().clone() for one in values]
        else:
            for one, gradient in zip(values, kept, strict=True):
                one.grad = gradient.clone()

    return backward


def fewer_rows(session: Any) -> Any:
    """Batches are a tenth smaller."""
    right = session._step
    return lambda rows: right(rows[: len(rows) * 9 // 10])


def one_batch(session: Any) -> Any:
    """The same batch again and again."""
    right, kept = session._step, []

    def step(rows: Any) -> None:
        kept.append(rows) if not kept else None
        right(kept[0])

    return step


def in_bfloat16(session: Any) -> Any:
    import torch

    return torch.bfloat16


def mlx_bfloat16(session: Any) -> Callable[[], None]:
    import mlx.core as mx

    right, session._compute, step = session._compute, mx.bfloat16, session._step
    session._step = session._plain_step

    def undo() -> None:
        session._compute, session._step = right, step

    return undo


def black(session: Any) -> Any:
    return session._x * 0


def higher_rate(session: Any) -> Callable[[], None]:
    """PyTorch's Adam with a learning rate that is 3 % too high."""

    def raise_rate(optimizer: Any, *_: Any) -> None:
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * 1.03

    undo: Callable[[], None] = session._optimizer.register_step_pre_hook(raise_rate).remove
    return undo


def alike(session: Any) -> Any:
    """Labels that are all the same."""
    return session._y * 0


def few_samples(session: Any) -> Any:
    """Only the first tenth of the samples."""
    return session._order % (len(session._order) // 10)


def dropout_off(session: Any) -> Callable[[], None]:
    import torch

    layers = [part for part in session._model.modules() if isinstance(part, torch.nn.Dropout)]
    for layer in layers:
        layer.eval()

    def undo() -> None:
        for layer in layers:
            layer.train()

    return undo


DENSE = {name: Setup("mnist-dense", name) for name in ("jax", "torch", "mlx", "tensorflow")}
MLP = {name: Setup("fashion-mlp", name) for name in ("jax", "torch", "mlx", "tensorflow")}
CNN = {name: Setup("mnist-cnn", name) for name in ("jax", "torch", "mlx", "tensorflow")}
LSTM = {name: Setup("fashion-lstm", name) for name in ("jax", "torch", "mlx", "tensorflow")}
SKIPS = {
    "half of a call left out": share_of_calls(1, 2),
    "a third left out": share_of_calls(2, 3),
    "every seventh step left out": every_seventh_left_out,
    "remainder of 64 left out": remainder_left_out,
}
SKIPPED = (
    ("call", "jax", "half of a call left out"),
    ("step", "tensorflow", "half of a call left out"),
    ("call", "jax", "a third left out"),
    ("step", "tensorflow", "every seventh step left out"),
    ("call", "jax", "remainder of 64 left out"),
    ("step", "tensorflow", "remainder of 64 left out"),
)
TORCH = {
    "labels smoothed by 0.1": attribute("_batch_loss", smoothed),
    "gradients clipped to 0.05": attribute("_backward", clipped),
    "first layer frozen": attribute("_backward", first_frozen),
    "each second gradient reused": attribute("_backward", gradient_reused),
    "batches a tenth smaller": attribute("_step", fewer_rows),
    "one batch again and again": attribute("_step", one_batch),
    "bfloat16 called float32": attribute("_half", in_bfloat16),
    "black pictures": attribute("_x", black),
    "labels all alike": attribute("_y", alike),
    "a tenth of the samples": attribute("_order", few_samples),
    "learning rate 3 % too high": while_changed(higher_rate),
}
# The workloads on which each is planted, and its key.
WORKLOADS: dict[str, tuple[str, tuple[dict[str, Setup], ...]]] = {
    "labels smoothed by 0.1": ("step", (MLP, LSTM)),
    "gradients clipped to 0.05": ("step", (MLP, LSTM)),
    "first layer frozen": ("step", (CNN,)),
    "each second gradient reused": ("step", (MLP, CNN)),
    "batches a tenth smaller": ("step", (DENSE, MLP, CNN)),
    "one batch again and again": ("step", (CNN, LSTM)),
    "bfloat16 called float32": ("step", (DENSE, MLP, CNN)),
    "black pictures": ("step", (MLP, LSTM)),
    "labels all alike": ("step", (MLP,)),
    "a tenth of the samples": ("step", (CNN,)),
    "learning rate 3 % too high": ("step", (DENSE, LSTM)),
}
Planned = tuple[str, str, Setup, Wrong]


def table() -> list[Planned]:
    """Key, words, cell and what is wrong."""
    made: list[Planned] = []
    for key, framework, words in SKIPPED:
        made.append((key, words, DENSE[framework], SKIPS[words]))
    made += [
        ("late", "half of a call left out", DENSE["mlx"], SKIPS["half of a call left out"]),
        ("step", "half of a call left out", CNN["mlx"], SKIPS["half of a call left out"]),
        ("step", "every seventh step left out", CNN["jax"], every_seventh_left_out),
        ("step", "every seventh step left out", LSTM["jax"], every_seventh_left_out),
        ("step", "half of a call left out", MLP["mlx"], SKIPS["half of a call left out"]),
        ("step", "every seventh step left out", MLP["tensorflow"], every_seventh_left_out),
    ]
    for words, wrong in TORCH.items():
        key, names = WORKLOADS[words]
        made += [(key, words, name["torch"], wrong) for name in names]
    made += [
        ("call", words, DENSE["torch"], TORCH[words])
        for words in ("gradients clipped to 0.05", "each second gradient reused")
    ]
    made += [
        ("step", "bfloat16 called float32", DENSE["mlx"], while_changed(mlx_bfloat16)),
        ("step", "bfloat16 called float32", LSTM["mlx"], while_changed(mlx_bfloat16)),
        ("step", "black pictures", DENSE["jax"], attribute("_x", black)),
        ("step", "dropout off", MLP["torch"], while_changed(dropout_off)),
        ("latch", "dropout off", MLP["torch"], while_changed(dropout_off)),
        ("latch", "first layer frozen", LSTM["torch"], TORCH["first layer frozen"]),
        ("unread", "half of a call left out", DENSE["jax"], SKIPS["half of a call left out"]),
        ("unread", "a third left out", DENSE["torch"], SKIPS["a third left out"]),
        ("unread", "nothing trained, sleeps a third", DENSE["jax"], sleeps(1 / 3)),
        ("unread", "nothing trained, sleeps a tenth", MLP["torch"], sleeps(1 / 10)),
        ("unread", "first layer frozen", MLP["torch"], TORCH["first layer frozen"]),
        ("step", "nothing trained, sleeps a third", LSTM["tensorflow"], sleeps(1 / 3)),
    ]
    return made


FAULTS = tuple(
    Fault(
        f"K{number}",
        f"{words}, {KEYS[key][0]}",
        "the timed session",
        setup,
        planted(KEYS[key][1], wrong),
        in_timed_loop=True,
        slip=key != "unread",
        unseen=KNOWS_WHEN if key == "unread" else "",
    )
    for number, (key, words, setup, wrong) in enumerate(table(), 1)
)
