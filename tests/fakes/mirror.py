"""A mirror on loopback: a real HTTP server that can cut, lie and stall."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from . import http_stub


@dataclass
class Mirror:
    """``cut_after``: bytes of an answer before the connection ends, or ``stalls`` until the end."""

    content: bytes
    cut_after: int | None = None
    stalls: bool = False
    ranges: bool = True
    tells_length: bool = True
    status: int | None = None
    requested_ranges: list[str | None] = field(default_factory=list)
    url: str = ""
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(mirror: Mirror) -> Iterator[Mirror]:
    class Handler(http_stub.Handler):
        def answer(self) -> None:
            wanted = self.headers.get("Range")
            mirror.requested_ranges.append(wanted)
            if mirror.status:
                self.send_error(mirror.status)
                return
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted else 0  # type: ignore[index]
            start *= mirror.ranges
            body, whole = mirror.content[start:], len(mirror.content)
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
            if mirror.tells_length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: mirror.cut_after])
            self.wfile.flush()
            if mirror.stalls:
                mirror.ended.wait(60)

    with http_stub.serving(Handler, mirror.ended) as address:
        mirror.url = f"{address}/file"
        yield mirror
