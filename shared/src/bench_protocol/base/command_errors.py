"""Messages about a wrong command line: the option, the values it takes, and the value given.

Typer's own messages come in a box, and of a number they quote pydantic.
"""

import re
from enum import Enum
from typing import Any

import typer

from .unknown_names import nearest, quoted, unknown

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]  # Typer does not export it


def usage_text(error: Any) -> str:
    """Typer's error in our words. Empty for a missing subcommand, whose help is already printed."""
    kind = type(error).__name__
    context: Any = getattr(error, "ctx", None)
    if kind == "NoArgsIsHelpError":
        return ""
    if kind == "MissingParameter" and error.param:
        return f"{_name(error.param, value=True)} is missing: {_lower(error.param.help)}"
    if kind == "BadParameter" and error.param:
        return _wrong_value(error)
    message = str(error.message)
    more = f"; {context.command_path} --help lists them" if context else ""
    if kind == "NoSuchOption":
        options = [name for each in context.command.params for name in (*each.opts, "--help")]
        meant = nearest(error.option_name, options)
        guess = f"; did you mean {meant}?" if meant else more
        return f"unknown option {quoted(error.option_name)}{guess}"
    if found := re.match(r"No such command '(.*?)'", message):
        return unknown("command", found[1], context.command.list_commands(context))
    if kind == "BadOptionUsage":
        return f"{error.option_name} {'needs a' if 'requires' in message else 'takes no'} value"
    if found := re.search(r"unexpected extra argument.* \((.*)\)", message):
        several = any(getattr(each, "multiple", False) for each in context.command.params)
        repeat = " repeat the option for each of several values;" if several else ""
        return (
            f"unexpected {quoted(found[1])}:{repeat} {context.command_path} --help shows what it "
            "takes"
        )
    return message


def _wrong_value(error: Any) -> str:
    """``--repeats takes a whole number from 1 to 1,000, not '0'``, from pydantic's report."""
    cause, name = error.__cause__, _name(error.param)
    descriptor = getattr(error.param, "type_descriptor", None)
    if not hasattr(cause, "errors") or descriptor is None:
        return f"{name}: {error.message}"
    value = str(cause.errors()[0]["input"])
    annotation, limits = descriptor.annotation, descriptor.parameter_info
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return unknown(name, value, [str(each.value) for each in annotation])
    if "int" not in str(annotation) and "float" not in str(annotation):
        return f"{name}: {error.message}"
    number = "a whole number" if "int" in str(annotation) else "a number"
    least = "" if limits.min is None else f" from {limits.min:,}"
    most = "" if limits.max is None else f" to {limits.max:,}"
    return f"{name} takes {number}{least}{most or (least and ' on')}, not {quoted(value)}"


def _name(parameter: Any, *, value: bool = False) -> str:
    """An argument's name in capitals, or the longest name of an option, with that of its value."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    longest = max(parameter.opts, key=len)
    return f"{longest} {parameter.metavar}" if value and parameter.metavar else str(longest)


def _lower(help_text: str | None) -> str:
    text = (help_text or "").removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
