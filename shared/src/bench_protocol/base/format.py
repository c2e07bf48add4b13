"""Format figures for people: durations, rates, ratios, sizes. All output is formatted here.

Durations are given in minutes from a minute on and in hours from an hour on.
"""

from collections.abc import Callable, Iterable, Sequence

# An interval has no more decimals than these.
MOST_DECIMALS = 6


def seconds(value: float) -> str:
    """Three figures or whole units: ``0.85 ms``, ``4.20 s``, ``3 min 5 s``, ``2 h 10 min``."""
    if value < 0.9995e-3:
        return f"{_three(value * 1e6)} µs"
    if value < 0.9995:
        return f"{_three(value * 1e3)} ms"
    if value < 59.95:
        return f"{_three(value)} s"
    return rough(value)


def rough(value: float) -> str:
    """An estimate, in whole seconds, minutes or hours: ``8 s``, ``1 min 10 s``, ``2 h 10 min``."""
    if value < 59.5:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} h {minutes} min"


def nanoseconds(value: float) -> str:
    """A duration given in nanoseconds, as :func:`seconds` shows it."""
    return seconds(value / 1e9)


def rate(per_second: float) -> str:
    """Samples per second: ``12,300``."""
    return f"{per_second:,.0f}" if per_second >= 1000 else _three(per_second)


def ratio(value: float, low: float | None = None, high: float | None = None) -> str:
    """A speed-up: ``1.64×``, ``0.410×``, ``0.0459×``; beside its range as :func:`times`."""
    return f"{times(value, low, high)}×"


def interval(low: float, high: float, write: Callable[[float], str], unit: str = "") -> str:
    """``1.59 to 2.01``, ``1.037 to 1.043``: the ends as ``write`` writes them, or, where that would
    make them equal, with as many decimals as tell them apart."""
    ends = [write(low), write(high)]
    fewest = len(ends[0].partition(".")[2])
    longer = ([f"{end:,.{n}f}" for end in (low, high)] for n in range(fewest, MOST_DECIMALS + 1))
    ends = next((pair for pair in (ends, *longer) if pair[0] != pair[1]), ends)
    return " to ".join(f"{end}{unit}" for end in ends)


def round_ratio(value: float) -> str:
    """A round speed-up of an axis: ``0.05×``, ``0.5×``, ``1×``, ``20×``."""
    return f"{value:,.0f}×" if value >= 999.5 else f"{value:.3g}×"


def faster(value: float, low: float | None = None, high: float | None = None) -> str:
    """A speed-up that stands alone: ``1.64 times as fast``, ``6.1 % slower``, and from half the
    speed down ``0.410 times as fast``."""
    if _is_a_little_slower(value):
        return f"{_two(100 * (1 - value))} % slower"
    return f"{times(value, low, high)} times as fast"


def faster_than(value: float, verb: str = "is") -> str:
    """A speed-up between two names: ``is 1.64 times as fast as``, ``is 6.1 % slower than``."""
    return f"{verb} {faster(value)} {'than' if _is_a_little_slower(value) else 'as'}"


def bounds(value: float, low: float, high: float) -> str:
    """The interval of a speed-up, in the words of :func:`faster`: ``1.59 to 2.01``,
    ``5.2 to 7 % slower``."""
    if _is_a_little_slower(value) and high < 0.9995:
        return f"{interval(100 * (1 - high), 100 * (1 - low), _two)} % slower"
    return interval(low, high, times)


def _is_a_little_slower(value: float) -> bool:
    return 0.5 < value < 0.9995


def _two(value: float) -> str:
    return f"{value:.2g}"


def times(value: float, low: float | None = None, high: float | None = None) -> str:
    """A ratio without a sign, in three digits: ``1.64``, ``12.3``, ``0.0459``, ``1,733``; just
    above one with a fourth, as just below: ``1.012``, ``0.988``. ``low`` and ``high``: the range
    beside it; where that needs more decimals to have two ends, the ratio has them too."""
    if low and high and times(low) == times(high):
        end = interval(low, high, times).split()[-1]
        return f"{value:,.{len(end.partition('.')[2])}f}"
    if value < 0.9995:
        return f"{value:#.3g}"
    return f"{value:.3f}" if 0.0005 <= value - 1 < 0.0995 else _three(value)


def deviation(value: float) -> str:
    """A relative deviation or its limit: ``0``, ``0.6``, ``1.2e-05``."""
    return f"{value:.2g}"


# How people write the names of frameworks.
FRAMEWORKS = {"jax": "JAX", "mlx": "MLX", "tensorflow": "TensorFlow", "torch": "PyTorch"}


def framework(name: str) -> str:
    """A framework's name in a sentence: ``PyTorch``; one without such a name stays as it is."""
    return FRAMEWORKS.get(name, name)


def ordinal(number: int) -> str:
    """``1st``, ``12th``, ``23rd``."""
    last = number % 10 if number % 100 not in (11, 12, 13) else 0
    return f"{number:,}{('th', 'st', 'nd', 'rd')[last] if last < 4 else 'th'}"


def plural(count: int, noun: str, several: str = "") -> str:
    """A number with its noun: ``1 entry``, ``2,000 entries``."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def percent(share: float, decimals: int = 1) -> str:
    """A share of one: ``2.3 %``, ``568 %``; with ``decimals=0`` ``2 %``."""
    return f"{share * 100:,.{decimals if abs(share) <= 1 else 0}f} %"


def size(value: int) -> str:
    """Bytes in binary multiples: ``24.0 GiB``."""
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")


def joules(value: float) -> str:
    """Energy: ``850 mJ``, ``12.3 J``, ``4.56 kJ``."""
    if value < 0.9995:
        return f"{_three(value * 1e3)} mJ"
    return f"{_three(value)} J" if value < 999.5 else f"{_three(value / 1e3)} kJ"


def money(value: float) -> str:
    """An amount without its currency: ``1,599``, ``12.30``, ``0.051``."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.2g}"


def day_and_time(moment: str) -> str:
    """A wire time to the minute: ``2026-11-21 03:42 UTC``."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(map(markdown_row, (heads, ("---",) * len(heads), *rows)))


def markdown_row(cells: Sequence[str]) -> str:
    """One row of a table in Markdown: ``| a | b |``."""
    return f"| {' | '.join(cells)} |"


def _three(value: float) -> str:
    for limit, digits in ((9.995, 2), (99.95, 1)):
        if value < limit:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"
