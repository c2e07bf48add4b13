"""Wait for what another thread or process does."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_for(look: Callable[[], Value], seconds: float = 60, pause_seconds: float = 0.02) -> Value:
    """Look until a value is true; after ``seconds`` the last one, which the caller checks."""
    deadline = time.monotonic() + seconds
    while not (value := look()) and time.monotonic() < deadline:
        time.sleep(pause_seconds)
    return value
