"""``bench-agent run`` of a fleet's worker, which measures nothing and is cut off before the repeat
that ``CUT_AT`` names."""

import os
import sys

from tests.agent.test_resume import OPEN, begun, interrupt, stop_at

from bench_agent.base.home import find_home
from bench_agent.output.documents import summary_document
from bench_agent.output.live import EventLines
from bench_agent.run import journal
from bench_agent.run.run import run_plan


def main() -> None:
    home, arguments = find_home(), sys.argv[1:]
    waiting = journal.unfinished(home) if "--resume" in arguments else None
    made = waiting or begun(home)
    job = stop_at(int(os.environ["CUT_AT"]), interrupt)
    lines = EventLines(sys.stdout)
    summary = run_plan(made, home, None, lines, run_job=job, gate=OPEN)
    lines.summary(summary_document(summary))
    sys.exit(130 if summary.interrupted else 0)


if __name__ == "__main__":
    main()
