"""Faults of the timed session at an epoch's end."""

from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import Any

from ..fault import Fault, Plant, Setup, patched

# So that some epochs end in a short timing.
TORCH = Setup("mnist-dense", "torch", batch_size=512)
JAX = Setup("mnist-dense", "jax")
MLP, CNN = Setup("fashion-mlp", "torch"), Setup("mnist-cnn", "torch")


def at_an_end(change: Callable[[Any], None]) -> Plant:
    """``change`` is done whenever an epoch has ended, before the next one's first step."""

    def plant(session: Any) -> None:
        train = session.train_block

        def block(steps: int) -> None:
            while steps:
                if session._position == session._steps_per_epoch:
                    change(session)
                left = session._steps_per_epoch - session._position % session._steps_per_epoch
                some = min(steps, left)
                train(some)
                steps -= some

        session.train_block = block

    return lambda here: here.sessions(plant)


def torch_emptied(session: Any) -> None:
    """The optimiser's state is empty; its counter goes on."""
    optimizer = session._optimizer
    for state in optimizer.state.values():
        state["exp_avg"].zero_()
        state["exp_avg_sq"].zero_()
    for squares in getattr(optimizer, "_squares", ()):
        squares.zero_()


def jax_emptied(session: Any) -> None:
    import jax

    *kept, moments = jax.tree.unflatten(session._tree, session._state)
    session._state = jax.tree.leaves((*kept, jax.tree.map(lambda value: value * 0, moments)))


def first_repeated(session: Any) -> None:
    """The epoch's second batch is its first one again."""
    order, batch = next(session._orders).copy(), session._batch_size
    order[batch : 2 * batch] = order[:batch]
    session._orders = chain([order], session._orders)


def third_not_shuffled(session: Any) -> None:
    """From the third epoch on a session keeps its order."""
    reorder, number = session._reorder, count(2)

    def once_more(order: Any) -> None:
        if next(number) < 3:
            reorder(order)

    session._reorder = once_more


def never_shuffled(_: Any) -> Any:
    """Orders that are given are taken; later epochs keep the last one."""

    def endless(orders: Any) -> Iterator[Any]:
        for order in orders:
            yield order
        while True:
            yield order

    return endless


FAULTS = tuple(
    Fault(name, words, where, setup, plant, in_timed_loop=True)
    for name, words, where, setup, plant in (
        ("L1", "Adam's state emptied at each epoch's end", "engines/torch/sessions.py", TORCH,
         at_an_end(torch_emptied)),
        ("L2", "Adam's state emptied at each epoch's end", "engines/jax/sessions.py", JAX,
         at_an_end(jax_emptied)),
        ("L3", "RMSprop's state emptied at each epoch's end", "engines/torch/sessions.py", CNN,
         at_an_end(torch_emptied)),
        ("L4", "first batch after an epoch's end repeated", "engines/torch/sessions.py", TORCH,
         at_an_end(first_repeated)),
        ("L5", "first batch after an epoch's end repeated", "engines/torch/sessions.py", MLP,
         at_an_end(first_repeated)),
        ("L6", "from the third epoch on the order is kept", "engines/torch/sessions.py", TORCH,
         lambda here: here.sessions(third_not_shuffled)),
        ("L7", "epochs without given orders are not shuffled", "engines/loop.py endless", TORCH,
         patched("loop:endless", never_shuffled)),
    )
)  # fmt: skip
