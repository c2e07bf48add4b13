"""A server full of invented results, for page tests and pictures: no figure here was measured.

``python -m tests.fakes.fleet FOLDER`` makes ``FOLDER/server.db`` and its keys. Everything goes
through the server's own functions, so that checks, ranks and the log are as they would be.
"""

from .filling import MARKUP, TWO, make

__all__ = ["MARKUP", "TWO", "make"]
