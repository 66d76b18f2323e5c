"""How a command line is run: old spellings are replaced, and every failure is reported here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import typer

from omnigraph.cli.command_classes import PlainGroup
from omnigraph.cli.command_errors import wants_json
from omnigraph.cli.command_table import COMMANDS, DeferredCommand
from omnigraph.cli.views import OutputError, print_warning

Arguments = Sequence[str]


class CommandLine(PlainGroup):
    """The root of the command tree, which knows how verbs were spelled once."""

    def __init__(self, **settings: Any) -> None:  # Any: settings of the command library
        super().__init__(**settings)
        deferred = {each.name: DeferredCommand(each) for each in COMMANDS}
        self.commands = deferred | dict(self.commands)

    def load_commands(self) -> None:
        """Load every command: for what looks at all of their options."""
        for name, command in self.commands.items():
            self.commands[name] = _load_deferred(command)

    # Any: commands and contexts of the library
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that a line names; an old spelling leads to its successor, with a warning."""
        arguments, warning = translate_spelling(args)
        if warning is not None and not ctx.resilient_parsing:
            print_warning(warning)
        if arguments[:1] == ["help"]:
            arguments = [*arguments[1:2], "--help"]
            if len(arguments) == 1:
                typer.echo(ctx.get_help())
                ctx.exit()
        try:
            name, command, rest = super().resolve_command(ctx, arguments)
        except typer.TyperException as failure:
            if not ctx.resilient_parsing and (found := self._find_below(arguments[0])):
                failure.message = f"No such command '{arguments[0]}'. Did you mean {found}?"
            raise
        return name, _load_deferred(command), rest

    def _find_below(self, name: str) -> str:
        """The commands of that name in groups."""
        self.load_commands()
        groups = {each: getattr(group, "commands", {}) for each, group in self.commands.items()}
        return ", ".join(f"'{each} {name}'" for each, below in groups.items() if name in below)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # Any: settings of a context, which the library defines
    ) -> Any:  # Any: what a command returns, where the caller wants to have it
        """Run a command line and exit; outside standalone mode, failures are raised."""
        settings = {"windows_expand_args": windows_expand_args, **extra}
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **settings)
        is_json = wants_json(sys.argv[1:] if args is None else args)
        try:
            code = super().main(args, prog_name, complete_var, False, **settings)
        except OutputError:
            raise
        except Exception as error:  # noqa: BLE001 — the report raises what it does not expect
            from omnigraph.cli.failure_report import report_failure

            code = report_failure(error, is_json=is_json)
        sys.exit(code)


def _load_deferred(command: Any) -> Any:  # Any: commands of the library
    return command.load() if isinstance(command, DeferredCommand) else command


@dataclass(frozen=True, slots=True)
class _OldSpelling:
    """An old spelling, its successor, and the options that the old one gave by itself."""

    words: tuple[str, ...]
    successor: str
    remark: str = ""
    is_meant: Callable[[Arguments], bool] = lambda _: True
    defaults: tuple[tuple[str, str], ...] = ()


def _make_option_test(*options: str) -> Callable[[Arguments], bool]:
    """Whether one of these options is given; the verb of that name today takes none of them."""
    spelled = tuple(f"{each}=" for each in options)
    return lambda arguments: any(each in options or each.startswith(spelled) for each in arguments)


# `query lint` also runs a query called `lint`, and `check` verifies a graph: what they are given
# separates the old meaning from the new one.
_SPELLINGS: Final = (
    _OldSpelling(("read",), "query"),
    _OldSpelling(("change",), "mutate"),
    _OldSpelling(
        ("ingest",),
        "load",
        defaults=(("--from", "main"), ("--mode", "merge"), ("--dialect", "compatible")),
    ),
    _OldSpelling(("query", "lint"), "lint", is_meant=_make_option_test("--schema")),
    _OldSpelling(("query", "check"), "lint", is_meant=_make_option_test("--schema")),
    _OldSpelling(
        ("check",),
        "lint",
        remark="; 'check' verifies a graph",
        is_meant=_make_option_test("--query", "--schema"),
    ),
)


def translate_spelling(arguments: Arguments) -> tuple[list[str], str | None]:
    """A command line as it is spelled now, and a warning if it was spelled otherwise."""
    for each in _SPELLINGS:
        length = len(each.words)
        if tuple(arguments[:length]) == each.words and each.is_meant(arguments):
            rest = list(arguments[length:])
            given = [
                word
                for option, value in each.defaults
                if not _make_option_test(option)(rest)
                for word in (option, value)
            ]
            warning = f"'{' '.join(each.words)}' is now '{each.successor}'{each.remark}"
            return [each.successor, *given, *rest], warning
    return list(arguments), None
