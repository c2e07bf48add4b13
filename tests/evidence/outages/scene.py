"""Play one fault on one database: set the scene, inflict it, let the agents finish, judge."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes import postgres

from . import agents, proxy, site
from .databases import database
from .faults import Fault, NotRecovered, Scene
from .starts import reference_seconds, too_slow
from .verdict import Verdict, judge, settle


@dataclass(frozen=True)
class Outcome:
    """What one fault on one database came to.

    ``up_seconds``: from each start of the server in a new interpreter to its first answer, the
    first start left out; their processor time is judged (:mod:`.starts`);
    ``again_seconds``: from the end of each outage to the next acknowledged result; ``unasked``:
    answers of 500 and more without Retry-After, by status.
    """

    fault: str
    kind: str
    times: int
    verdict: Verdict
    up_seconds: tuple[float, ...]
    again_seconds: tuple[float, ...]
    unasked: dict[int, int]
    failure: str | None = None

    @property
    def is_right(self) -> bool:
        return self.verdict.is_right and not self.unasked and self.failure is None


def play(
    fault: Fault,
    kind: str,
    times: int,
    cluster: postgres.Cluster | None = None,
    start: site.Start | None = None,
) -> Outcome:
    """Inflict a fault ``times`` times on a database of its own, and judge what is left.

    Raises:
        Missing: the fault needs what is not here.
    """
    return play_all([fault._replace(times=times)], kind, cluster, start)


def play_all(
    faults: Sequence[Fault],
    kind: str,
    cluster: postgres.Cluster | None = None,
    start: site.Start | None = None,
) -> Outcome:
    """Inflict faults one after the other on one site, and judge once.

    Args:
        start: starts programs; without it the faults say how.
    """
    needs = _together(faults)
    start = start or (site.Forked if needs.forked else site.Fresh)
    times, failure = 0, None
    with _scene(needs, kind, cluster, start) as (home, scene):
        try:
            for fault in faults:
                times += fault.inflict(scene, fault.times)
        except (NotRecovered, TimeoutError) as error:
            failure = str(error)
        agents.rest(scene.agents)
        agents.end(scene.agents)
        settle(scene.database.url)
        if start is site.Fresh and (starts := scene.site.start_seconds[1:]):
            failure = failure or too_slow(starts, reference_seconds())
        scene.site.close()
        verdict = judge(scene.database.url, home, scene.agents)
        return Outcome(
            needs.name,
            kind,
            times,
            verdict,
            () if start is site.Forked else tuple(scene.site.up_seconds[1:]),
            tuple(scene.again_seconds),
            _unasked(scene),
            failure,
        )


def _together(faults: Sequence[Fault]) -> Fault:
    """A fault with the needs of all."""
    return faults[0]._replace(
        name=", ".join(fault.name for fault in faults),
        agents=max(fault.agents for fault in faults),
        apart=any(fault.apart for fault in faults),
        proxied=any(fault.proxied for fault in faults),
        on_disk=any(fault.on_disk for fault in faults),
        log_apart=any(fault.log_apart for fault in faults),
    )


@contextmanager
def _scene(
    needs: Fault, kind: str, cluster: postgres.Cluster | None, start: site.Start
) -> Iterator[tuple[Path, Scene]]:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainmark-outage-")))
        made = stack.enter_context(
            database(kind, home, on_disk=needs.on_disk, cluster=cluster, log_apart=needs.log_apart)
        )
        here = stack.enter_context(site.running(made.url, home, apart=needs.apart, start=start))
        between = stack.enter_context(proxy.running(here.port)) if needs.proxied else None
        address = between.address if between else here.address
        harmed = agents.start(needs.agents, home, address)
        stack.callback(agents.end, harmed)
        yield home, Scene(here, made, harmed, between)


def _unasked(scene: Scene) -> dict[int, int]:
    counts: Counter[int] = Counter()
    for agent in scene.agents:
        counts += agent.tally.unasked
    if scene.proxy is not None:
        del counts[502]  # its own
    counts += Counter({500: scene.site.early[500]})
    return dict(counts)
