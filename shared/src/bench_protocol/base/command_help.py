"""The style of ``--help`` in both programs: values are named in capitals by what they are."""

from typing import Any


def plain(command: Any) -> None:
    """Leave types and ranges out of the ``--help`` of a Typer command and its subcommands. The
    words of a parameter say what it takes; values are checked as before."""
    plain_parameters(command.get_params(command.make_context("", [], resilient_parsing=True)))
    for subcommand in getattr(command, "commands", {}).values():
        plain(subcommand)


def plain_parameters(parameters: list[Any]) -> list[Any]:
    """The parameters of a Typer command, without types and ranges in ``--help``."""
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None
        parameter.min = parameter.max = None
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.metavar is None and parameter.param_type_name == "option":
            parameter.metavar = "TEXT"
    return parameters
