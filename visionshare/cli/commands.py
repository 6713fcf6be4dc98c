"""What all commands share: options that stand before or after them, help, and suggestions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from visionshare.errors.names import near_names
from visionshare.machine.progress import shown

_HELP = {"help_option_names": ["-h", "--help"]}
# What the help shows for a value of a type, where an option says nothing better.
_METAVARS = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


@dataclass
class Switches:
    """The options of all commands, as the user gave them before or after the command."""

    debug: bool = False
    verbose: bool = False
    quiet: bool = False


def _switched(context: typer.Context, param: typer.CallbackParam, value: bool) -> None:
    """Note an option of all commands, wherever it stands."""
    if value and isinstance(context.obj, Switches) and param.name:
        setattr(context.obj, param.name, True)


#: What options of all commands have in common.
SHARED: dict[str, Any] = {
    "callback": _switched, "expose_value": False, "rich_help_panel": "Options of all commands",
}  # fmt: skip


class _SharedHelp:
    """A command or group that takes the options of the root, and shows help under headings."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with the options of all commands before ``--help``."""
        *own, help_option = super().get_params(ctx)  # type: ignore[misc]
        root = ctx.find_root().command
        if self is root:
            return [*own, help_option]
        shared = [param for param in root.params if param.name in vars(Switches())]
        return [*own, *shared, help_option]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each group of options under its heading."""
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            heading = getattr(param, "rich_help_panel", None) or "Options"
            if param.param_type_name == "argument":
                heading = "Arguments"
                record = (param.metavar, record[1])
            sections.setdefault(heading, []).append(record)
        _write_sections(formatter, sections)
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)


def _write_sections(formatter: Any, sections: dict[str, list[Any]]) -> None:
    """Write lists of names and explanations, each under its heading."""
    for heading, records in sections.items():
        if not records:
            continue
        with formatter.section(heading):
            formatter.write_dl(records)


class Command(_SharedHelp, TyperCommand):
    """A command that shows progress and logs as the options of all commands say."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        switches = ctx.obj if isinstance(ctx.obj, Switches) else Switches()
        if switches.verbose:
            import logging

            logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
        with shown(not switches.quiet):
            return super().invoke(ctx)


class Group(_SharedHelp, TyperGroup):
    """A group of commands: without arguments it shows its help, and it suggests commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take no arguments for a question for help."""
        return super().parse_args(ctx, args or ["--help"])

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each group of them under its heading."""
        width = formatter.width - 6 - max(map(len, self.commands))
        sections: dict[str, list[Any]] = {}
        for name, command in self.commands.items():
            heading = getattr(command, "rich_help_panel", None) or "Commands"
            record = (name, command.get_short_help_str(width))
            sections.setdefault(heading, []).append(record)
        _write_sections(formatter, sections)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of a name, or fail with the nearest ones."""
        name = args[0]
        if not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            near = near_names(name, self.commands)
            inner = [
                f"{group} {name}"
                for group, command in self.commands.items()
                if name in getattr(command, "commands", ())
            ]
            found = " or ".join(f"'{ctx.command_path} {text}'" for text in [*near, *inner])
            ctx.fail(f"No command {name!r}." + (f" Did you mean {found}?" if found else ""))
        return super().resolve_command(ctx, args)


class Commands(typer.Typer):
    """A group of commands in the style of this command line."""

    def __init__(self, name: str, help: str, **options: Any) -> None:
        super().__init__(
            name=name,
            help=help,
            cls=Group,
            context_settings=_HELP,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            **{"add_completion": False, **options},
        )

    def command(self, name: str | None = None, **options: Any) -> Any:
        """Add a function as a command; the fields of its dataclasses are options of their own."""
        register = super().command(name, **{"cls": Command, **options})

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            register(_with_plain_options(function))
            return function

        return add


def _with_plain_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the fields of dataclass parameters one by one."""
    # Not get_type_hints: in Python 3.10 it hides what is annotated where None is the default.
    hints = inspect.get_annotations(function, eval_str=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in groups:
            hint = _described(hints[parameter.name], parameter.name, None)
            parameters.append(parameter.replace(annotation=hint))
            continue
        group = groups[parameter.name]
        heading = (group.__doc__ or "").splitlines()[0].rstrip(".")
        hints_of_group = get_type_hints(group, include_extras=True)
        for field in fields(group):
            hint = _described(hints_of_group[field.name], field.name, heading)
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=hint,
                )
            )

    @wraps(function)
    def called(**values: Any) -> Any:
        for name, group in groups.items():
            given = {field.name: values.pop(field.name) for field in fields(group)}
            values[name] = group(**given)
        return function(**values)

    # Options that follow a group may be positional in the function: all are passed by name.
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def _described(hint: Any, name: str, heading: str | None) -> Any:
    """Return the annotation of an option with a readable type, under a heading."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, info = get_args(hint)
    info = copy(info)
    if isinstance(info, ArgumentInfo):
        info.metavar = info.metavar or name.upper()
    else:
        info.metavar = info.metavar or _metavar(kind)
        info.rich_help_panel = info.rich_help_panel or heading
    return Annotated[kind, info]


def _metavar(kind: Any) -> str | None:
    """Return what stands for a value of a type in the help; None for switches."""
    inner = [part for part in get_args(kind) if part is not type(None)] or [kind]
    part = get_args(inner[0])[0] if get_args(inner[0]) else inner[0]
    return _METAVARS.get(part)
