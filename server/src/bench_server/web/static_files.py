"""Static files. An address with the digest of the content is valid for a year, others are not."""

import hashlib
import os
from functools import cache
from pathlib import Path

from fastapi import Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).resolve().parent / "static"
IMMUTABLE = "public, max-age=31536000, immutable"


@cache
def digest(name: str) -> str:
    return hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()[:12]


def address(name: str) -> str:
    """It changes with the content, so that browsers do not use an old one."""
    return f"/static/{name}?v={digest(name)}"


class DigestedFiles(StaticFiles):
    """Immutable at the address of the present content; elsewhere a browser must ask again."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        answer = super().file_response(full_path, stat_result, scope, status_code)
        name = Path(full_path).relative_to(FOLDER).as_posix()
        current = scope["query_string"] == f"v={digest(name)}".encode()
        answer.headers["cache-control"] = IMMUTABLE if current else "no-cache"
        return answer
