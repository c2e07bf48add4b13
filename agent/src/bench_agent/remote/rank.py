"""The rank of a machine on a server, asked when its results are on the boards."""

from collections.abc import Collection
from typing import Any, NamedTuple

from bench_protocol.payload.rank_text import beside_words, rank_words

from .client import Client


class MachineRank(NamedTuple):
    """The address of a machine's page, and its rank in words, None without one."""

    address: str
    words: str | None

    @property
    def machine_id(self) -> str:
        """The server's id of the machine."""
        return self.address.rpartition("/")[2]


def machine_rank(
    client: Client, result_id: str, workloads: Collection[str] = ()
) -> MachineRank | None:
    """The rank of a result's machine, once boards have it. None without a ranked result.

    Args:
        workloads: those just measured, whose rank comes first.

    Raises:
        ServerUnreachable: the server does not answer.
        ServerRefused: it knows no such result.
    """
    answer = client.result_on_board(result_id)
    machine_id = answer.get("machine_id") if answer else None
    if not isinstance(machine_id, str):
        return None
    places = client.read(f"/api/v1/machines/{machine_id}").get("places")
    return MachineRank(f"{client.server}/machines/{machine_id}", in_words(places, workloads))


def in_words(places: Any, workloads: Collection[str] = ()) -> str | None:
    """The rank of a machine's hardware in the first of these workloads that has one, else in its
    first of all, and the machine beside its median: ``15th of 47 on mnist-cnn; this machine is
    1.02 times as fast as the median one``."""
    if not isinstance(places, list):
        return None
    ranked = [place for place in places if isinstance(place, dict) and place.get("rank")]
    ranked.sort(key=lambda place: place["workload"] not in workloads)  # stable: else as they came
    return rank_words(ranked[0]) + beside_words(ranked[0]) if ranked else None
