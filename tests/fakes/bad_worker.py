"""A worker that misbehaves as its first argument says. Run as a real process."""

import ctypes
import json
import os
import signal
import sys
import time

BLOCK = {"event": "block", "duration_ns": 1_000_000, "steps": 1, "share_done": 0.1}


def say(descriptor: int, message: object) -> None:
    text = message if isinstance(message, str) else json.dumps(message)
    os.write(descriptor, text.encode() + b"\n")


def main(how: str, descriptor: int) -> None:
    if how == "dies before reading":
        os._exit(7)
    sys.stdin.buffer.read()
    say(descriptor, {"event": "phase", "phase": "timing"})
    print('a library prints {"event": "answer"} to standard output', flush=True)
    if how == "segfaults":
        ctypes.string_at(0)
    elif how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exits in silence":
        sys.exit(0)
    elif how == "prints garbage":
        say(descriptor, "\x00\xff not JSON")
    elif how == "answers nonsense":
        say(descriptor, {"event": "answer", "outcome": {"status": "measured"}})
    elif how == "answers without end":
        while True:
            os.write(descriptor, b"x" * 65536)
    elif how == "hangs before the first block":
        time.sleep(600)
    elif how == "hangs between blocks":
        say(descriptor, BLOCK)
        time.sleep(600)
    elif how == "never ends":
        while True:
            say(descriptor, BLOCK)
            time.sleep(0.01)
    elif how == "leaves a child":
        if os.fork() == 0:
            time.sleep(600)
        os._exit(3)
    elif how == "evaluates for long":
        say(descriptor, BLOCK)
        say(descriptor, {"event": "phase", "phase": "evaluate"})
        time.sleep(1.0)
        os._exit(3)
    elif how == "cannot allocate":
        print("terminate called after throwing an instance of 'std::bad_alloc'", flush=True)
        os.abort()
    elif how == "raises":
        raise RuntimeError("boom")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[sys.argv.index("--answer-fd") + 1]))
