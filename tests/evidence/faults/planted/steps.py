"""Faults in a loop: steps left out, repeated or of the wrong batch."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from ..fault import Fault, Plant, Setup, patched
from .optimiser import JAX, TF, TORCH

JAX_NAIVE = Setup("mnist-dense", "jax", "naive")
MLX_PIPELINE = Setup("mnist-dense", "mlx", "pipeline")
TF_NAIVE = Setup("mnist-dense", "tensorflow", "naive")


def sessions(change: Callable[[Any], None]) -> Plant:
    return lambda here: here.sessions(change)


def unrolled(offsets: Callable[[int], list[int]]) -> Plant:
    """TensorFlow: the loop's unrolled body trains other steps. A copy of the engine's program."""

    def compile_(self: Any, unroll: int) -> Any:
        import tensorflow as tf

        def program(first: Any, steps: Any, trained: Any) -> Any:
            end = first + steps

            def body(step: Any, loss: Any, how_many: int) -> Any:
                for offset in offsets(how_many):
                    loss = self._step(step + offset, trained + (step - first) + (offset + 1))
                return step + how_many, loss

            step, loss = first, tf.constant(0.0)
            for how_many in (unroll, 1):
                step, loss = tf.while_loop(
                    lambda step, loss, many=how_many: step + many <= end,
                    partial(body, how_many=how_many),
                    (step, loss),
                    parallel_iterations=1,
                )
            return loss

        return tf.function(program, autograph=False, jit_compile=False)

    return patched("tensorflow.steps:StepsSession._compile", lambda _: compile_)


def rows_of(choose: Callable[[list[Any]], list[Any]]) -> Plant:
    """PyTorch: of a call's batches some are trained, but all are counted by the loop."""

    def change(session: Any) -> None:
        def train(first: int, count: int) -> None:
            batch = session._batch_size
            rows = session._order[first * batch : (first + count) * batch].split(batch)
            for some in choose(list(rows)):
                session._step(some)

        session._train = train

    return sessions(change)


def same_batch(self: Any, state: Any, frozen: Any, data: Any, key: Any, numbers: Any) -> Any:
    """JAX: the loop's body does not add its turn to the first step."""
    import jax
    import jax.numpy as jnp

    first, trained, count = numbers

    def body(offset: Any, carry: Any) -> Any:
        return self._single(carry[0], frozen, data, key, (first, trained + offset))

    return jax.lax.fori_loop(0, count, body, (state, jnp.float32(0)))


def half_of_blocks(session: Any) -> None:
    train = session.train_block
    session.train_block = lambda steps: train(max(1, steps // 2))


def first_batch_only(session: Any) -> None:
    """A loop that is fed from the host: one batch for ever."""
    batch = next(session._batches)
    session._batches = iter(lambda: batch, None)


def repeated_orders(change: Callable[[Any], Any]) -> Plant:
    """The orders of later epochs."""

    def endless(orders: Any) -> Iterator[Any]:
        first, *_ = orders
        yield first
        while True:
            yield change(first)

    return patched("loop:endless", lambda _: endless)


def second_half(order: Any) -> Any:
    half = order[len(order) // 2 :]
    return np.concatenate([half, half])[: len(order)]


def after(steps: int, change: Callable[[Any], Any]) -> Plant:
    """The timed session is honest in its first steps."""

    def plant(session: Any) -> None:
        train, trained = session.train_block, [0]

        def block(count: int) -> None:
            honest = trained[0] < steps
            trained[0] += count
            if honest:
                train(count)
            else:
                change(session)(train, count)

        session.train_block = block

    return lambda here: here.sessions(plant)


def counted(train_share: int) -> Callable[[Any], Any]:
    """JAX: trains one of some steps and counts all."""

    def of(session: Any) -> Any:
        def block(train: Any, count: int) -> None:
            done = max(1, count // train_share) if train_share else 0
            if done:
                train(done)
            session._trained += count - done

        return block

    return of


def skip_at_end(session: Any) -> None:
    """The last step of an epoch is left out."""
    train = session._train

    def all_but_last(first: int, count: int) -> None:
        if first + count == session._steps_per_epoch:
            count -= 1
        if count:
            train(first, count)

    session._train = all_but_last


def fed_half(session: Any) -> None:
    """MLX: a fed loop takes every second batch, and its optimiser's counter is moved on."""
    train, taken = session.train_block, session._batches

    def block(steps: int) -> None:
        train(max(1, steps // 2))
        session._optimizer.state["step"] = session._optimizer.step + (steps - max(1, steps // 2))
        list(islice(taken, steps // 2))

    session.train_block = block


TF_STEPS, JAX_LOOP = "engines/tensorflow/steps.py _compile", "engines/jax/sessions.py"
TORCH_LOOP, MLX_LOOP = "engines/torch/sessions.py", "engines/mlx/sessions.py"
FAULTS = tuple(
    Fault(name, words, where, setup, plant, in_timed_loop=True)
    for name, words, where, setup, plant in (
        ("B1", "unrolled body trains its first batch 16 times", TF_STEPS, TF,
         unrolled(lambda many: [0] * many)),
        ("B2", "unrolled body trains 1 step of 16", TF_STEPS, TF, unrolled(lambda many: [0])),
        ("B3", "a block trains only its first step", TORCH_LOOP, TORCH,
         rows_of(lambda rows: rows[:1])),
        ("B5", "same batch all through a block", JAX_LOOP, JAX,
         patched("jax.sessions:TunedSession._steps", lambda _: same_batch)),
        ("B13", "later epochs keep the first order", "engines/loop.py endless", TORCH,
         repeated_orders(lambda order: order)),
        ("B14", "later epochs train only their second half", "engines/loop.py endless", TORCH,
         repeated_orders(second_half)),
        ("C4", "nothing at all after 390 steps, all counted", JAX_LOOP, JAX,
         after(390, counted(0))),
        ("N10", "fit trains half of the batches", "engines/tensorflow/fit.py", TF_NAIVE,
         sessions(half_of_blocks)),
        ("N11", "half of the steps, counted as all", MLX_LOOP, MLX_PIPELINE,
         sessions(fed_half)),
        ("N12", "one batch for ever", JAX_LOOP, JAX_NAIVE, sessions(first_batch_only)),
        ("N14", "an epoch's last step is left out", JAX_LOOP, JAX, sessions(skip_at_end)),
    )
)  # fmt: skip
