"""``bench-agent``: the list of commands."""

import sys
from typing import Annotated, Any, NoReturn

import typer

from bench_protocol.base.lazy_commands import LazyCommands

from .. import __version__
from ..base.errors import DataProblem, HomeProblem, UsageProblem
from ..base.terminal import write
from .exits import Exit

# Name: the function or group in this folder, the line that --help shows.
COMMANDS = {
    "run": ("run:run", "Measure, sign and store the results; with a server, post them."),
    "report": ("report:report", "Write the last run as one self-contained HTML file, or as JSON."),
    "submit": ("submit:submit", "Post the pending results in the outbox, each once."),
    "devices": ("doctor:devices", "Show this machine and the devices that each framework sees."),
    "doctor": ("doctor:doctor", "Say what runs here, what does not and why, and how to fix it."),
    "plan": (
        "plan:plan",
        "Show what a run measures, how long it takes, and what is left out and why.",
    ),
    "status": ("submit:status", "Show the outbox: pending, sent and refused results."),
    "ab": ("ab:ab", "Compare two set-ups or two environments: a ratio with its interval."),
    "watch": (
        "watch:watch",
        "Measure set-ups again every week, and after a new driver, system or framework.",
    ),
    "fleet": (
        "fleet:fleet",
        "Print a file for Slurm, Kubernetes, Ansible or SkyPilot that measures several machines.",
    ),
    "verify": ("verify:verify", "Check a result's signature, its key's history and its log entry."),
    "conformance": ("conformance:conformance", "Check that every framework trains the same."),
    "keys": ("keys:app", "This machine's key: show, rotate, renew, revoke."),
    "results": (
        "results:app",
        "Your results on a server: list, export, hide, show, withdraw.",
    ),
    "enroll": ("submit:enroll", "Make this machine's key known to a server."),
    "environments": (
        "environments:app",
        "Interpreters whose frameworks are measured: list, add, remove and check them.",
    ),
    "data": ("data:app", "The real data sets: fetch, list and verify them."),
}
# The headings of --help, and the commands below each.
GROUPS = {
    "Start": "run report submit",
    "Look": "devices doctor plan status",
    "Compare": "ab watch fleet",
    "Trust": "verify conformance keys results enroll",
    "Set up": "environments data",
}
PANELS = {name: heading for heading, names in GROUPS.items() for name in names.split()}

# A command line that works, shown at the end of the command's help.
EXAMPLES = {
    "devices": "bench-agent devices --json",
    "doctor": "bench-agent doctor --bundle report.txt",
    "plan": "bench-agent plan --preset quick --framework torch",
    "run": "bench-agent run --preset quick --workload mnist-cnn --framework mlx --framework torch",
    "ab": "bench-agent ab --a recipe=naive --b recipe=tuned --workload fashion-mlp --framework jax",
    "watch": "bench-agent watch --preset quick --server http://bench.lab:8000 --yes",
    "fleet": "bench-agent fleet --emit slurm --machines 4 --server https://bench.lab",
    "report": "bench-agent report --json",
    "conformance": "bench-agent conformance --framework tensorflow",
    "submit": "bench-agent submit --server http://bench.lab:8000",
    "status": "bench-agent status --json",
    "enroll": "bench-agent enroll --server http://bench.lab:8000",
    "verify": "bench-agent verify http://bench.lab:8000/results/0f1e2d3c4b5a6978",
    "keys": "bench-agent keys show",
    "results": "bench-agent results list --server http://bench.lab:8000",
    "environments": "bench-agent environments list",
    "data": "bench-agent data fetch mnist",
}

RUN_INTERRUPTED = (
    "Interrupted. Finished results are in the outbox. To continue:\n  bench-agent run --resume"
)


class Commands(LazyCommands):
    """The commands of :data:`COMMANDS`, with what an interrupted one says."""

    package = __package__
    table = COMMANDS
    panels = PANELS
    examples = EXAMPLES

    def complain(self, words: str) -> None:
        from ..output.console import complain  # here: --help and --version need no console

        complain(words)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # Typer would end without a word
            self.complain(RUN_INTERRUPTED if ctx.invoked_subcommand == "run" else "Interrupted.")
            raise typer.Exit(Exit.INTERRUPTED) from None
        except typer.Abort as abort:  # an answer no, or Ctrl-C at a question
            if not isinstance(abort.__context__, KeyboardInterrupt):
                raise
            self.complain("Interrupted.")
            raise typer.Exit(Exit.INTERRUPTED) from None


app = typer.Typer(
    name="bench-agent",
    cls=Commands,
    epilog="First: `bench-agent run --server http://bench.lab:8000`",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # lines of a paragraph belong together
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        write(f"bench-agent {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version."),
]


@app.callback()
def program(version: Version = False) -> None:
    """Measure how fast this machine trains small image, dense and LSTM models; sign and share the
    results."""


def main() -> None:
    """Run the command line. A problem that the user can fix ends in one line and an exit code.
    What the system refuses is one, wherever it does: too many open files, a disk that fails."""
    try:
        app()
    except (UsageProblem, HomeProblem, DataProblem) as problem:
        _leave(Exit.WRONG_USAGE, str(problem))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _leave(Exit.WRONG_USAGE, f"{where}{error.strerror or error}")


def _leave(code: Exit, message: str) -> NoReturn:
    from ..output.console import complain  # here: --help and --version need no console

    complain(message)
    sys.exit(code)
