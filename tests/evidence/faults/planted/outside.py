"""Faults of the timing: work outside of the clock, shaved blocks, a synchronisation that lags."""

from typing import Any

from bench_protocol.payload.result import Measurement

from ..fault import SENDERS_CLOCK, Fault, Plant, Planting, Setup
from .clock import stopwatch_block
from .keyed import DENSE, LSTM
from .sending import Sent, measurement


def trained_between(share: int) -> Plant:
    """One of ``share`` steps is trained between two blocks, while no clock runs."""

    def plant(here: Planting) -> None:
        from bench_agent.worker import stopwatch

        def block(self: Any, steps: int) -> int:
            outside = max(1, steps // share) if steps > 1 else 0
            if outside:
                self._session.train_block(outside)
            started_ns: int = self.now()
            self._session.train_block(steps - outside)
            ended_ns: int = self.now()
            return max(1, ended_ns - started_ns)

        stopwatch._Stopwatch.block = block  # type: ignore[method-assign]

    return plant


def shaved(share: float) -> Plant:
    """Each block's time loses a share where it is taken."""
    return stopwatch_block(lambda duration_ns: int(duration_ns * (1 - share)))


def shaved_with_window(share: float) -> Sent:
    """Blocks and what the parent received lose the same share."""
    left = 1 - share

    def change(made: Measurement) -> dict[str, Any]:
        shorter = tuple(max(1, int(duration * left)) for duration in made.blocks.durations_ns)
        blocks = made.blocks.model_copy(update={"durations_ns": shorter})
        if made.window is None:
            return {"blocks": blocks}
        first, *_ = made.window.received_ns
        received = tuple(first + int((at - first) * left) for at in made.window.received_ns)
        window = made.window.model_copy(update={"received_ns": received})
        return {"blocks": blocks, "window": window}

    return measurement(change)


def sync_of_before(session: Any) -> None:
    """JAX: waits for what was requested before the last synchronisation."""
    import jax

    before = [session._loss]

    def sync() -> None:
        jax.block_until_ready(before[0])
        before[0] = session._loss

    session.sync = sync


STOPWATCH, PARENT = "worker/stopwatch.py block", "run/timed_part.py"
FAULTS = (
    *(
        Fault(name, words, STOPWATCH, setup, plant, in_timed_loop=True, slip=slip)
        for name, words, setup, plant, slip in (
            ("L8", "half of the steps trained between two blocks", DENSE["jax"],
             trained_between(2), True),
            ("L9", "a twentieth of the steps trained between two blocks", LSTM["torch"],
             trained_between(20), True),
            ("L10", "block times shaved by 4 %", DENSE["torch"], shaved(0.04), False),
            ("L11", "block times shaved by 8 %", DENSE["tensorflow"], shaved(0.08), False),
        )
    ),
    *(
        Fault(name, words, PARENT, setup, sent=shaved_with_window(share), slip=False,
              unseen=SENDERS_CLOCK)
        for name, words, setup, share in (
            ("L12", "block times and window shaved by 8 %", DENSE["mlx"], 0.08),
        )
    ),
    Fault(
        "L14", "synchronisation waits for the block before", "engines/jax/sessions.py sync",
        Setup("mnist-cnn", "jax"), lambda here: here.sessions(sync_of_before), in_timed_loop=True,
    ),
)  # fmt: skip
