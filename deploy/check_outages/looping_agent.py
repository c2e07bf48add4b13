"""An agent that runs and submits in a loop, in one process, whose memory the soak watches:
``looping_agent HOME SERVER``. Everything is real except the engine."""

import sys
from pathlib import Path

from tests.fakes.quick_agent import main

from bench_agent.base.home import Home
from bench_agent.cli.setup import open_client
from bench_agent.cli.submit import ask_consent


def loop(home: Home, server: str) -> None:
    """Run until a signal ends the process."""
    client = open_client(server, home)
    ask_consent(client, None, yes=True)
    client.close()
    while True:
        main(home, server, None)


if __name__ == "__main__":
    loop(Home(Path(sys.argv[1])), sys.argv[2])
