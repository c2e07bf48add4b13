"""The faults, one function each. A function harms a site several times while agents submit, and
returns how often it did. A new fault is a function and a row of ``FAULTS``.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import NamedTuple

import httpx
from tests.fakes.waiting import wait_for

from . import agents as agents_module
from .agents import Agent
from .databases import KINDS, POSTGRESQL, Database
from .proxy import Harm, Proxy
from .site import Site, moment

RECOVER_SECONDS = 60.0
OUTAGE_SECONDS = (0.5, 2.0)
LIFE_SECONDS = (0.1, 1.0)
# Of the kills: those that wait until the server answers. The others also hit its start.
UP_SHARE = 0.5
# Within it each of 200 agents measures twice.
CROWD_OUTAGE_SECONDS = 7.0
# SQLite waits 10 s for a lock before it gives up.
LOCKED_SECONDS = 12.0
JUMPS = (
    *(timedelta(hours=5), timedelta(hours=-5), timedelta(days=1), timedelta(days=-1)),
    *(timedelta(days=400), timedelta(days=-400)),
)
# Read while a disk is full.
READ = ("/", "/results", "/api/v1/leaderboard?workload=mnist-cnn", "/api/v1/log")


class NotRecovered(Exception):
    """No result was acknowledged for a minute after a fault, or what must go on during it did
    not."""


@dataclass
class Scene:
    """What a fault harms. ``again_seconds``: from the end of each outage to the next acknowledged
    result, where the server was not started again."""

    site: Site
    database: Database
    agents: list[Agent]
    proxy: Proxy | None = None
    again_seconds: list[float] = field(default_factory=list)
    chance: random.Random = field(default_factory=random.SystemRandom)

    def recovered(self) -> None:
        """Wait until a result is acknowledged.

        Raises:
            NotRecovered: it takes longer than a minute.
        """
        began, before = time.monotonic(), agents_module.acknowledged(self.agents)
        while agents_module.acknowledged(self.agents) == before:
            if any(agent.contradiction for agent in self.agents):
                return
            if time.monotonic() - began > RECOVER_SECONDS:
                raise NotRecovered(f"nothing was acknowledged within {RECOVER_SECONDS:.0f} s")
            time.sleep(0.01)
        self.again_seconds.append(time.monotonic() - began)


Inflict = Callable[[Scene, int], int]


def kills(scene: Scene, times: int) -> int:
    """SIGKILL server, projector or recomputation at random points, also while they start."""
    for _ in range(times):
        if scene.chance.random() < UP_SHARE:
            scene.site.wait_until_up()
        moment(scene.chance, *LIFE_SECONDS)
        scene.site.kill(scene.chance.choice(scene.site.names))
    scene.site.wait_until_up()
    return times


def restarts(scene: Scene, times: int) -> int:
    """SIGTERM to the server, as an update does."""
    for _ in range(times):
        scene.site.stop("server")
        scene.site.start("server")
        scene.site.wait_until_up()
        moment(scene.chance, 0.2, 1.0)
    return times


def database_restarts(scene: Scene, times: int) -> int:
    """Restart PostgreSQL; every second time it crashes."""
    assert scene.database.cluster is not None
    for number in range(times):
        moment(scene.chance, 0.1, 0.8)
        scene.database.cluster.restart("immediate" if number % 2 else "fast")
        scene.recovered()
        scene.site.revive()
    return times


def read_only(scene: Scene, times: int) -> int:
    """PostgreSQL refuses writes, as after a failover to a standby."""
    for _ in range(times):
        scene.database.read_only(True)
        moment(scene.chance, *OUTAGE_SECONDS)
        scene.database.read_only(False)
        scene.recovered()
        scene.site.revive()
    return times


def locked(scene: Scene, times: int) -> int:
    """Another program holds SQLite's lock for longer than the server waits."""
    for _ in range(times):
        with scene.database.locked():
            time.sleep(LOCKED_SECONDS)
        scene.recovered()
        scene.site.revive()
    return times


def disk_full(scene: Scene, times: int) -> int:
    """The database's disk is full; then the operator frees space and starts what has ended."""
    for _ in range(times):
        moment(scene.chance, 0.2, 0.8)
        with scene.database.full():
            moment(scene.chance, *OUTAGE_SECONDS)
        if scene.database.cluster is not None:
            scene.database.cluster.ensure_running()
        scene.site.revive()
        scene.recovered()
    return times


def data_disk_full(scene: Scene, times: int) -> int:
    """The disk is full until a post was refused; meanwhile all can be read. Afterwards nothing is
    started again.

    Raises:
        NotRecovered: no post was refused, or a page could not be read.
    """
    for _ in range(times):
        before = agents_module.refused(scene.agents)
        with scene.database.full():
            if not wait_for(partial(_refused_since, scene, before), RECOVER_SECONDS):
                raise NotRecovered("no post was refused while the disk was full")
            statuses = {path: httpx.get(scene.site.address + path).status_code for path in READ}
        if set(statuses.values()) != {200}:
            raise NotRecovered(f"while the disk was full pages answered {statuses}")
        scene.recovered()
    if not all(scene.site.is_alive(name) for name in scene.site.names):
        raise NotRecovered("a program ended while the disk was full")
    return times


def _refused_since(scene: Scene, before: int) -> bool:
    return agents_module.refused(scene.agents) > before


def pooler_kills(scene: Scene, times: int) -> int:
    """SIGKILL to PgBouncer; it is started again."""
    assert scene.database.pooler is not None
    for _ in range(times):
        moment(scene.chance, 0.1, 0.8)
        scene.database.pooler.kill()
        moment(scene.chance, 0, 1)
        scene.database.pooler.start()
        scene.recovered()
        scene.site.revive()
    return times


def clock_jumps(scene: Scene, times: int) -> int:
    """The clock of server and agents jumps by a day or 400 days, forwards and backwards."""
    for number in range(times):
        jump = JUMPS[number % len(JUMPS)]
        scene.site.shift_clock(jump)
        for agent in scene.agents[::2]:
            agent.clock_offset = -jump
        scene.recovered()
        scene.site.revive()  # the signal ends a program that has not begun to listen for it
        moment(scene.chance, *OUTAGE_SECONDS)
    scene.site.shift_clock(timedelta(0))
    return times


def harmed(scene: Scene, times: int, harm: Harm) -> int:
    """The proxy harms requests or answers."""
    proxy = scene.proxy
    assert proxy is not None
    proxy.harm = harm
    wait_for(lambda: proxy.harmed >= times, RECOVER_SECONDS, 0.05)
    proxy.harm = None
    return proxy.harmed


def crowd(scene: Scene, times: int) -> int:
    """All agents come at once after an outage; ``again_seconds``: until every outbox is empty."""
    for _ in range(times):
        scene.site.stop("server")
        time.sleep(CROWD_OUTAGE_SECONDS)
        scene.site.start("server")
        scene.site.wait_until_up()
        began = time.monotonic()
        agents_module.rest(scene.agents)
        scene.again_seconds.append(time.monotonic() - began)
        for agent in scene.agents:
            agent.idle.clear()
    return times


class Fault(NamedTuple):
    """A fault and the scene that it needs.

    ``seconds``: how long it takes on one database on two cores, for the time left. ``times``: how
    often; of kills their share. ``apart``: the projector is a program of its own. ``log_apart``:
    PostgreSQL's write-ahead log is not on the disk that fills up, so that it goes on. ``forked``:
    programs start in a tenth of the time, from a process that has imported them.
    """

    name: str
    inflict: Inflict
    times: int
    seconds: float
    agents: int = 12
    apart: bool = False
    proxied: bool = False
    on_disk: bool = False
    log_apart: bool = False
    forked: bool = False
    databases: tuple[str, ...] = KINDS


def _proxied(harm: Harm) -> Fault:
    return Fault(f"proxy: {harm}", partial(harmed, harm=harm), 150, 12, proxied=True)


KILLS = Fault(
    "kill -9 of server, projector, recomputation", kills, 150, 130, apart=True, forked=True
)
FAULTS = (
    KILLS,
    Fault("server restarted", restarts, 10, 45),
    Fault("200 agents at once after an outage", crowd, 1, 45, agents=200),
    _proxied("delayed"),
    _proxied("request lost"),
    _proxied("request cut"),
    _proxied("answer lost"),
    _proxied("answer cut"),
    _proxied("502"),
    _proxied("twice at once"),
    Fault("database restarted", database_restarts, 10, 35, databases=POSTGRESQL),
    Fault("database read-only", read_only, 5, 20, databases=POSTGRESQL),
    Fault("database locked", locked, 1, 25, databases=("sqlite",)),
    Fault("pooler killed", pooler_kills, 10, 35, databases=("pgbouncer",)),
    Fault("disk full", disk_full, 5, 30, on_disk=True),
    Fault("disk of the data full", data_disk_full, 3, 30, on_disk=True, log_apart=True),
    Fault("clock jumps", clock_jumps, 12, 45),
)
