"""The terminal of the shell: editing over several lines, history, and completion."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from omnigraph.cli.shared_options import OutputFormat
from omnigraph.cli.shell.shell_completion import (
    Vocabulary,
    list_completions,
    measure_typed,
    read_names,
)
from omnigraph.cli.shell.shell_input import COMMAND_MARK, is_whole
from omnigraph.cli.shell.shell_session import COMMANDS, ShellSession
from omnigraph.cli.views import print_hint
from omnigraph.errors import OmnigraphError
from omnigraph.operator_config.operator_home import find_home

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog

_HISTORY_NAME: Final = "shell_history"


def read_typed(session: ShellSession) -> Iterator[str]:
    """What is typed at the prompt, until Ctrl-D; Ctrl-C drops a line."""
    prompt: PromptSession[str] = PromptSession(
        history=_open_history(),
        completer=SchemaCompleter(session),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_bind_keys(),
        prompt_continuation=lambda width, _line, _wrapped: "... ".rjust(width),
        enable_open_in_editor=True,
    )
    while not session.is_ended:
        place = session.target.branch or session.target.snapshot
        try:
            yield prompt.prompt(f"{place}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


class SchemaCompleter(Completer):
    """Completes the names of the state that a session reads."""

    def __init__(self, session: ShellSession) -> None:
        self._session = session
        self._catalog: Catalog | None = None
        self._text = ""

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """The words that may stand at the cursor."""
        del complete_event
        text = document.text_before_cursor
        back = -measure_typed(text)
        for word in list_completions(text, self._read_vocabulary()):
            yield Completion(word, start_position=back)

    def _read_vocabulary(self) -> Vocabulary:
        from omnigraph.query.function_signatures import FUNCTION_NAMES

        try:
            branches = tuple(sorted(self._session.graph.branches()))
            catalog = self._read_catalog()
        except OmnigraphError:
            # A completion never fails: an input that is run says what is wrong.
            branches, catalog = (), self._catalog
        return Vocabulary(
            **({} if catalog is None else read_names(catalog)),
            functions=tuple(sorted(FUNCTION_NAMES)),
            branches=branches,
            formats=tuple(each.value for each in OutputFormat),
            parameters=tuple(f"${name}" for name in sorted(self._session.params)),
            commands=tuple(COMMAND_MARK + name for name in COMMANDS),
        )

    def _read_catalog(self) -> Catalog | None:
        from omnigraph.schema import compile_schema

        text = self._session.target.open(self._session.graph).schema
        if text != self._text:
            self._text, self._catalog = text, compile_schema(text).catalog
        return self._catalog


def _bind_keys() -> KeyBindings:
    """Enter runs an input that is whole, and begins a line of any other."""
    keys = KeyBindings()

    @keys.add("enter")
    def accept(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        is_at_end = not buffer.document.text_after_cursor.strip()
        if is_at_end and is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @Condition
    def is_on_empty_line() -> bool:
        document = get_app().current_buffer.document
        return not document.current_line.strip() and not document.text_after_cursor.strip()

    @keys.add("c-d", filter=is_on_empty_line)
    def leave(event: KeyPressEvent) -> None:
        # Also below an input that is not whole: what is typed of it is dropped.
        event.app.exit(exception=EOFError)

    return keys


def _open_history() -> History:
    home = find_home(os.environ)
    if home is None or home == Path(os.devnull):
        return InMemoryHistory()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = home / _HISTORY_NAME
        # What was typed may hold data: it is for this user alone.
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError as failure:
        print_hint(f"no history is kept: {failure.strerror}")
        return InMemoryHistory()
    return FileHistory(path)
