"""The list of commands of both programs. A command's module is imported when the command runs.

Only the programs' main modules import this one: Typer takes long, and workers need none.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from . import streams
from .command_errors import USAGE_ERROR, usage_text


class LazyCommands(TyperGroup):
    """A program's commands. ``--help`` lists them and imports none, and a wrong command line ends
    in one line and exit code 2."""

    # The package of the commands' modules.
    package: ClassVar[str]
    # Name: the function or group in the package, the line that --help shows.
    table: ClassVar[Mapping[str, tuple[str, str]]]
    # The heading of each command in the program's help; none without it.
    panels: ClassVar[Mapping[str, str]] = {}
    # A command line that works, shown at the end of the command's help.
    examples: ClassVar[Mapping[str, str]] = {}

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the group as Typer does. If not ``standalone_mode``, errors are raised."""
        streams.open_all()
        run: Any = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        try:
            code = run(*args, standalone_mode=False, **extra)
        except USAGE_ERROR as error:
            if words := usage_text(error):
                self.complain(words)
            sys.exit(2)
        except typer.Abort:
            self.complain("Aborted.")
            sys.exit(1)
        if lost := streams.loss():
            self.complain(f"standard output is not complete: {lost}")
            sys.exit(code or 1)
        sys.exit(code if isinstance(code, int) else 0)

    def complain(self, words: str) -> None:
        print(words, file=sys.stderr)

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_parameters(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.table:
            return None
        panel = self.panels.get(cmd_name)
        return TyperCommand(cmd_name, help=self.table[cmd_name][1], rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _listed, rest = super().resolve_command(ctx, args)
        return name, name and self.load(name), rest

    @classmethod
    def load(cls, name: str) -> Any:
        """Import a command of the table and return it as a Click command."""
        module, attribute = cls.table[name][0].split(":")
        target = getattr(import_module(f".{module}", cls.package), attribute)
        if isinstance(target, typer.Typer):
            group = target
        else:
            group = typer.Typer(add_completion=False, rich_markup_mode="markdown")
            group.command(name)(target)
        command = typer.main.get_command(group)
        command.name = name
        if name in cls.examples:
            command.epilog = f"Example: `{cls.examples[name]}`"
        _plain(command)
        return command


def _plain(command: Any) -> None:
    """Leave types and ranges out of the ``--help`` of a Typer command and its subcommands. The
    words of a parameter say what it takes; values are checked as before."""
    _plain_parameters(command.get_params(command.make_context("", [], resilient_parsing=True)))
    for subcommand in getattr(command, "commands", {}).values():
        _plain(subcommand)


def _plain_parameters(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None
        parameter.min = parameter.max = None
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.metavar is None and parameter.param_type_name == "option":
            parameter.metavar = "TEXT"
    return parameters
