"""How much the worker of a witnessed run trains, and so how long a run takes."""

from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import SAMPLES_PER_SEGMENT

# Training takes about so long on the agent's own clock; the server's has the start too.
WANTED_NS = 7_500_000_000
# Before the clock starts, by which the time of a step is known.
WARM_UP_STEPS = (8, 24)
# Start of the framework, data, upload.
OTHER_SECONDS = 7.5


def segments_for(step_ns: float) -> int:
    """The number of segments that train for some seconds."""
    wanted = round(WANTED_NS / max(1.0, step_ns * speed_run.STEPS))
    return max(speed_run.LEAST_SEGMENTS, min(wanted, speed_run.MOST_SEGMENTS))


def expected_seconds(samples_per_second: float) -> float:
    """About how long a witnessed run takes at a rate of training."""
    segment = SAMPLES_PER_SEGMENT / samples_per_second
    warm_up = sum(WARM_UP_STEPS) / speed_run.STEPS
    step_ns = segment * 1e9 / speed_run.STEPS
    return OTHER_SECONDS + (warm_up + segments_for(step_ns)) * segment
