"""The classes of commands: quick to start.

Rich draws help as boxes, and pydantic converts values; loading each of them takes longer than all
the rest of a short command. So help is plain text, with a section for each panel of options, and a
value that has its type already is not converted.
"""

from __future__ import annotations

from typing import Any, Final

import typer
from typer import _completion_classes
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

HELP_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_WRONG_ARGUMENTS: Final = 2
_SUMMARY_CHARACTERS_MAX: Final = 200
# Summaries have no markup; to remove it for completion, the library would load Rich.
_completion_classes._sanitize_help_text = str  # type: ignore[assignment]  # noqa: SLF001 — no option


class _TypedOption(TyperOption):
    """An option that converts nothing where its value has its type."""

    def process_value(self, ctx: Any, value: Any) -> Any:  # Any: of the command library
        """The value that a command gets."""
        if _needs_conversion(self, value):
            return super().process_value(ctx, value)
        found = () if value is None and self.multiple else value
        return found if self.callback is None else self.callback(ctx, self, found)


class _TypedArgument(TyperArgument):
    """An argument that converts nothing where its value has its type."""

    def process_value(self, ctx: Any, value: Any) -> Any:  # Any: of the command library
        """The value that a command gets."""
        if _needs_conversion(self, value):
            return super().process_value(ctx, value)
        found = () if value is None and self.nargs != 1 else value
        return found if self.callback is None else self.callback(ctx, self, found)


class PlainCommand(TyperCommand):
    """A command whose help is plain text."""

    def get_params(self, ctx: Any) -> list[Any]:  # Any: of the command library
        """The parameters, with those that the library adds to every command."""
        return _replace_classes(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:  # Any: of the command library
        """Write the sections of options."""
        _write_options(self, ctx, formatter)


class PlainGroup(TyperGroup):
    """A group of commands whose help is plain text, printed also where no command is given."""

    def get_params(self, ctx: Any) -> list[Any]:  # Any: of the command library
        """The parameters, with those that the library adds to every command."""
        return _replace_classes(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # Any: of the command library
        """Parse the options of the group; without any argument, print help and exit."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(_WRONG_ARGUMENTS)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # Any: of the command library
        """Write the sections of options, then the commands."""
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # Any: of the command library
        """Write every command with its whole summary; the library would cut it."""
        shown = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(_SUMMARY_CHARACTERS_MAX))
                    for name, command in shown
                    if command is not None and not command.hidden
                ]
            )


def make_app(**settings: Any) -> typer.Typer:  # Any: settings of the command library
    """An empty tree of commands with plain help."""
    return typer.Typer(
        **{"cls": PlainGroup} | settings, rich_markup_mode=None, context_settings=HELP_SETTINGS
    )


def _replace_classes(parameters: list[Any]) -> list[Any]:  # Any: of the command library
    for each in parameters:
        # The library makes parameters from annotations and asks for no class of ours.
        each.__class__ = _TypedOption if isinstance(each, TyperOption) else _TypedArgument
    return parameters


def _needs_conversion(parameter: Any, value: Any) -> bool:  # Any: of the command library
    if value is None:
        return bool(parameter.required)
    return type(value) is not parameter.type_descriptor.annotation


# Any: commands, contexts and formatters of the library
def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            panel = getattr(parameter, "rich_help_panel", None) or kind
            sections.setdefault(panel, []).append(record)
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
