"""An agent in the longest run that the command line allows, whose memory the soak watches:
``long_run HOME SERVER``. Everything is real except the engine."""

import sys
from pathlib import Path

from tests.fakes.quick_agent import main

from bench_agent.base.home import Home
from bench_agent.cli.setup import open_client
from bench_agent.cli.submit import ask_consent

MOST_REPEATS = 1000


def measure(home: Home, server: str) -> None:
    """Measure and submit until a signal ends the process."""
    client = open_client(server, home)
    ask_consent(client, None, yes=True)
    client.close()
    main(home, server, None, MOST_REPEATS)


if __name__ == "__main__":
    measure(Home(Path(sys.argv[1])), sys.argv[2])
