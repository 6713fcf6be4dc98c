"""What all commands share: options that stand before or after them, help, and suggestions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from visionshare.errors.names import near_names
from visionshare.machine.progress import shown

__all__ = ["Command", "Commands", "Group", "Switches", "switched"]

# Sections of the help are indented less than Click would, so that 40 columns suffice.
_HELP = {"help_option_names": ["-h", "--help"]}


@dataclass
class Switches:
    """The options of all commands, as the user gave them before or after the command."""

    debug: bool = False
    verbose: bool = False
    quiet: bool = False


def switched(context: typer.Context, param: typer.CallbackParam, value: bool) -> None:
    """Note an option of all commands, wherever it stands."""
    if value and isinstance(context.obj, Switches) and param.name:
        setattr(context.obj, param.name, True)


class _WithSwitches:
    """A command or group that takes the options of the root as its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with those of all commands before ``--help``."""
        *own, help_option = super().get_params(ctx)  # type: ignore[misc]
        root = ctx.find_root().command
        if self is root:
            return [*own, help_option]
        shared = [param for param in root.params if param.name in vars(Switches())]
        return [*own, *shared, help_option]


class Command(_WithSwitches, TyperCommand):
    """A command that shows progress and logs as the options of all commands say."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        switches = ctx.obj if isinstance(ctx.obj, Switches) else Switches()
        if switches.verbose:
            import logging

            logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
        with shown(not switches.quiet):
            return super().invoke(ctx)


class Group(_WithSwitches, TyperGroup):
    """A group of commands: without arguments it shows its help, and it suggests commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take no arguments for a question for help."""
        return super().parse_args(ctx, args or ["--help"])

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
        """Add a function as a command."""
        return super().command(name, **{"cls": Command, **options})
