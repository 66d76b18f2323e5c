"""How a route is served: its handler, where that runs, and what it asks first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.server.lanes import Lane

if TYPE_CHECKING:
    from omnigraph.server.exchange import Answer, Call, StreamedAnswer, WriteAct
    from omnigraph.server.request_reader import Receive


@dataclass(frozen=True, slots=True)
class Binding:
    """How a route is served.

    `handle` does its work in a lane. A write has a `write_act`, which the policy is asked before
    the write is admitted. A read that may be quick has `prepare_read` in place of `handle`: it
    finds the state, and returns what a read must equal to be as quick, and the work.
    """

    handle: Callable[[Call], Answer | StreamedAnswer] | None = None
    lane: Lane = Lane.READ
    write_act: Callable[[Call], WriteAct] | None = None
    prepare_read: Callable[[Call], tuple[Hashable, Callable[[], Answer]]] | None = None
    # Asked before the body is read.
    require_rights: Callable[[Call], None] | None = None
    # What decides how the route is served, once its body is known.
    resolve: Callable[[Call], Binding] | None = None
    # Answers in the event loop, and reads the body itself.
    ask: Callable[[Call, Receive], Awaitable[Answer]] | None = None
    is_load: bool = False
    # Its work has the bounds of a read, and ends when the client goes away.
    is_bounded: bool = False
