"""``bench-agent`` in a process that was forked with its imports done (:mod:`.live`)."""

import sys

from bench_agent.cli import main as agent


def main(arguments: list[str]) -> None:
    sys.argv = ["bench-agent", *arguments]
    agent.main()
