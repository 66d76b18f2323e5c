"""How a command line is run: old spellings are replaced, and every failure is reported here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from omnigraph.cli.failures import (
    FAILED,
    CommandError,
    SystemFailureError,
    UnexpectedError,
    report_error,
    report_usage_error,
    wants_json,
)
from omnigraph.cli.old_spellings import translate_spelling
from omnigraph.cli.views import OutputError, print_problems, print_warning
from omnigraph.errors import OmnigraphError


class CommandLine(TyperGroup):
    """The root of the command tree, which knows how verbs were spelled once."""

    # Any: commands and contexts of the library
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that a line names; an old spelling leads to its successor, with a warning."""
        arguments, warning = translate_spelling(args)
        if warning is not None and not ctx.resilient_parsing:
            print_warning(warning)
        return super().resolve_command(ctx, arguments)

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
        except typer.TyperException as error:
            code = report_usage_error(error, is_json=is_json)
        except (OmnigraphError, CommandError) as error:
            code = report_error(error, is_json=is_json)
        except OSError as error:
            code = report_error(SystemFailureError(str(error)), is_json=is_json)
        except typer.Abort:
            print_problems(["aborted"])
            code = FAILED
        except OutputError:
            raise
        except Exception as error:
            # The traceback is for people; a program gets its document all the same.
            if is_json:
                report_error(UnexpectedError(f"{type(error).__name__}: {error}"), is_json=True)
            raise
        sys.exit(code)
