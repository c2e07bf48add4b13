"""``verify-log``: verify a server's log, and that its leaderboard follows from the log.

The input is public answers of a server, or a dump of them, and nothing in it is trusted. The audit
rebuilds the tree from the entries and compares it with the tiles and every checkpoint, verifies
each entry's envelope and each envelope's key, and replays the whole history into an empty database.
Its leaderboard must equal the one shown: speeds, trust levels, and how many count.

Entries are checked tile by tile (:mod:`.chunk`), and what depends on what earlier ones did when
they are replayed (:mod:`.replay`).
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from bench_protocol.base.errors import InvalidProof, ProtocolError
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload import statement
from bench_protocol.signing import cosignatures, note, receipts
from bench_protocol.signing.cosignatures import WitnessKey
from bench_protocol.signing.note import NoteKey, split

from ..answers.types.trust import StatedBreak
from ..log.server_keys import Identity
from . import chunk, figures, losses, shown
from .chunk import Fault
from .chunks import Chunks, Fetch
from .figures import Compared
from .replay import LeftOut, Replay

# Attempts to fetch boards of one log size while new results arrive.
TRIES = 20
PAUSE_SECONDS = 0.3
STATE_PATH = "/api/v1/log"
COSIGNED_PATH = "/api/v1/log/cosigned?limit=366"


@dataclass(frozen=True)
class Report:
    """What was audited, and the faults. ``key``: the verifier key of the log; ``as_of``: the number
    of entries that the boards follow from; ``levels``: the number of results whose trust level was
    compared, which are those that did not change while they were read; ``set_back``: the entries
    before which the server's clock was set back, which is no fault; ``losses``: the losses of
    entries that the log states."""

    origin: str
    key: str
    size: int
    as_of: int
    results: int
    withheld: int
    figures: int
    levels: int
    set_back: tuple[int, ...]
    losses: tuple[StatedBreak, ...]
    faults: tuple[Fault, ...]


class Shown(NamedTuple):
    """The figures that boards show, and the number of log entries that they follow from."""

    boards: dict[str, Compared]
    as_of: int


def audit(fetch: Fetch, witnesses: Sequence[WitnessKey] = ()) -> Report:
    """Audit a server, whose bytes at a path ``fetch`` returns; ``witnesses`` must have cosigned.

    Raises:
        ProtocolError: an answer is malformed.
    """
    # Fetch the boards first: the log then contains every entry behind them.
    boards = _shown(fetch)
    state = shown.read(shown.STATE, STATE_PATH, fetch(STATE_PATH))
    key = note.parse_key(state["key"])
    checkpoint = receipts.open_checkpoint(fetch("/checkpoint").decode(errors="replace"), key)
    chunks = Chunks(fetch, checkpoint.size, boards.as_of)
    keys = map(statement.public_key, (state["challenge_key"], state["operator_key"]))
    identity = Identity(state["origin"], *keys)
    tree, faults, results = chunk.Tree(key), [], 0
    stated = losses.Losses(state["breaks"], key)
    with closing(Replay(identity, boards.as_of)) as replay:
        for part in chunks:
            checked = chunk.check(part, identity, chunks.keys)
            wrong = [*tree.faults(part), *checked.faults, *stated.faults(part)]
            broken = {fault.log_index for fault in wrong}
            sound = [item for item in checked.verified if item.record["log_index"] not in broken]
            refused = [fault for fault in checked.refused if fault.log_index not in broken]
            faults += [*wrong, *refused, *replay.accept(sound)]
            results += sum(item.record["kind"] == "result" for item in sound)
        faults += [*tree.root_faults(checkpoint), *stated.other_faults(checkpoint)]
        faults += figures.faults(replay.boards(), boards.boards)
        faults += figures.level_faults(replay.levels(), chunks.levels)
        complete = not chunks.withheld
        faults += _draw_faults(replay.draws(), chunks.notes, key, complete=complete)
    faults += [Fault(*fault) for fault in _cosigned_faults(fetch, key, chunks.notes, witnesses)]
    return Report(
        origin=checkpoint.origin,
        key=str(key),
        size=checkpoint.size,
        results=results,
        withheld=chunks.withheld,
        as_of=boards.as_of,
        figures=len(boards.boards),
        levels=len(chunks.levels),
        set_back=tuple(chunks.set_back),
        losses=tuple(stated.stated),
        faults=tuple(sorted(faults, key=lambda f: (f.log_index is None, f.log_index or 0))),
    )


def _shown(fetch: Fetch) -> Shown:
    """Fetch the figures of the leaderboard, again if its boards follow from different entries."""
    for _ in range(TRIES):
        boards = [_board(fetch, workload) for workload in CATALOGUE]
        if len({board.as_of for board in boards}) == 1:
            break
        time.sleep(PAUSE_SECONDS)
    else:
        raise InvalidProof("the boards change faster than they can be fetched; try again later")
    return Shown({k: v for board in boards for k, v in board.boards.items()}, boards[0].as_of)


def _board(fetch: Fetch, workload: Workload) -> Shown:
    rows: dict[str, Compared] = {}
    cursor, as_of = "", 0
    while True:
        path = (
            f"/api/v1/leaderboard?workload={workload.name}&group=setup&batch_size=any"
            f"&precision=any&limit=500{cursor}"
        )
        page = shown.read(shown.BOARD, path, fetch(path))
        as_of = page["as_of"]
        rows |= dict(
            figures.of_row(row, workload.name) for row in page["rows"] if not row["published"]
        )
        if page["next_cursor"] is None:
            return Shown(rows, as_of)
        cursor = f"&cursor={page['next_cursor']}"


def _draw_faults(
    left_out: Iterable[LeftOut], notes: Mapping[int, str], key: NoteKey, *, complete: bool
) -> Iterator[Fault]:
    """Find draws whose root is not that of the first checkpoint with the job's first result.

    ``notes``: by the index of their last entry. Unless ``complete``, that result may be hidden.
    """
    lasts = sorted(notes)
    for log_index, first_index, draw in left_out:
        at = bisect_right(lasts, first_index - 1)
        right = lasts[at] + 1 if at < len(lasts) else None
        if draw.size != right and (complete or right is None or draw.size > right):
            detail = f"its draw is by the checkpoint of {draw.size} entries, not of {right}"
            yield Fault(log_index, detail)
        elif draw.size - 1 not in notes:
            yield Fault(
                log_index, f"its draw is by a checkpoint of {draw.size}, which is not shown"
            )
        elif receipts.open_checkpoint(notes[draw.size - 1], key).root.hex() != draw.root:
            yield Fault(log_index, "its draw is by another root than its checkpoint has")


def _cosigned_faults(
    fetch: Callable[[str], bytes],
    key: NoteKey,
    notes: Mapping[int, str],
    witnesses: Sequence[WitnessKey],
) -> Iterator[tuple[int | None, str]]:
    """Faults, each with its log index. ``notes``: the audited checkpoints, by last index."""
    seen: set[str] = set()
    for one in shown.read(shown.COSIGNED, COSIGNED_PATH, fetch(COSIGNED_PATH))["checkpoints"]:
        size, note = one["size"], one["checkpoint"]
        try:
            receipts.open_checkpoint(note, key)
            signed = cosignatures.cosignatures(note, witnesses)
            same = split(note)[0] == _signed_then(notes, size)
        except ProtocolError as error:
            yield size - 1, f"its cosigned checkpoint does not verify: {error.detail}"
            continue
        if not same:
            yield size - 1, "witnesses signed another checkpoint than the log shows"
            continue
        seen |= {cosignature.witness for cosignature in signed}
    for witness in witnesses:
        if witness.name not in seen:
            yield None, f"no checkpoint is cosigned by {witness.name}"


def _signed_then(notes: Mapping[int, str], size: int) -> str | None:
    signed = notes.get(size - 1)
    return None if signed is None else split(signed)[0]
