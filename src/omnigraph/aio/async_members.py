"""Builds the members of an asynchronous class from a class of the engine."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from functools import partial, wraps
from types import FunctionType
from typing import Any, ClassVar, Final, Generic, TypeVar

from omnigraph.aio.call_threads import CallThreads
from omnigraph.execution.query_budget import Cancellation

Handle = TypeVar("Handle")

_CANCEL: Final = "cancel"
# What writes take, whose repetition it marks.
_KEY: Final = "key"
# The asynchronous class of a class that methods return, by the name in their annotations.
_TWINS: Final[dict[str, type[AsyncHandle[Any]]]] = {}  # Any: of each its own


class AsyncHandle(Generic[Handle]):
    """A handle whose methods are awaited; threads run the same methods of a synchronous one."""

    IMMEDIATE: ClassVar[Collection[str]] = ()
    HIDDEN: ClassVar[Collection[str]] = ()

    def __init__(self, handle: Handle, threads: CallThreads | None = None) -> None:
        self._handle = handle
        self._threads = threads or CallThreads(str(getattr(handle, "uri", handle)))

    def __init_subclass__(cls, *, of: type) -> None:
        """Give the class a member for each one of `of`, except those it hides or defines.

        Members that are immediate answer without waiting; all others are awaited.
        """
        _TWINS[of.__name__] = cls
        for name in [*(each for each in dir(of) if not each.startswith("_")), *cls.IMMEDIATE]:
            if name not in cls.HIDDEN and name not in vars(cls):
                setattr(cls, name, _build_member(name, of, is_immediate=name in cls.IMMEDIATE))

    @property
    def sync(self) -> Handle:
        """The synchronous handle, for code that runs in a thread of its own."""
        return self._handle

    def __repr__(self) -> str:
        return f"Async{self._handle!r}"


def _build_member(name: str, of: type, *, is_immediate: bool) -> object:
    found = inspect.getattr_static(of, name, None)
    function = found.fget if isinstance(found, property) else found
    twin = _find_twin_name(function)
    if is_immediate:
        if isinstance(function, FunctionType) and not isinstance(found, property):
            return _build_immediate_method(name, function, twin)
        return property(lambda self: getattr(self.sync, name), doc=getattr(found, "__doc__", None))
    assert isinstance(function, FunctionType), f"{of.__name__}.{name} is neither"
    if isinstance(found, property):
        return _build_awaited(name, function, twin, read=partial(_read_property, name))
    if str(function.__annotations__.get("return")).startswith("Iterator["):
        return _build_iterating(name, function)
    return _build_awaited(name, function, twin, read=partial(_bind_method, name))


def _find_twin_name(function: object) -> str:
    """The last word of what a function returns, such as `Baseline` of `feed.Baseline`."""
    return str(getattr(function, "__annotations__", {}).get("return")).rpartition(".")[2]


def _build_immediate_method(name: str, function: FunctionType, twin: str) -> object:
    @wraps(function)
    def call(self: AsyncHandle[Any], *args: Any, **keywords: Any) -> Any:  # Any: as the engine says
        return _wrap(self, getattr(self.sync, name)(*args, **keywords), twin)

    return call


def _build_awaited(
    name: str,
    function: FunctionType,
    twin: str,
    *,
    read: Callable[
        [object, tuple[Any, ...], Mapping[str, Any]], Callable[[], Any]
    ],  # Any: see below
) -> object:
    taken = inspect.signature(function).parameters
    takes_cancellation, is_write = _CANCEL in taken, _KEY in taken

    @wraps(function)
    async def call(self: AsyncHandle[Any], *args: Any, **keywords: Any) -> Any:  # Any: as there
        cancellation = keywords.setdefault(_CANCEL, Cancellation()) if takes_cancellation else None
        work = read(self.sync, *_resolve_handles(args, keywords))
        threads = self._threads
        found = await threads.run(work, cancellation=cancellation, is_write=is_write)
        return _wrap(self, found, twin)

    call.__name__ = name
    return call


def _build_iterating(name: str, function: FunctionType) -> object:
    @wraps(function)
    def iterate(self: AsyncHandle[Any], *args: Any, **keywords: Any) -> AsyncIterator[Any]:
        work = _bind_method(name, self.sync, *_resolve_handles(args, keywords))
        return self._threads.iter_items(work)

    return iterate


def _read_property(name: str, handle: object, *_: object) -> Callable[[], Any]:
    return lambda: getattr(handle, name)


def _bind_method(
    name: str, handle: object, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Callable[[], Any]:
    return partial(getattr(handle, name), *args, **keywords)


def _resolve_handles(
    args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Arguments with the synchronous handles of asynchronous ones, such as a branch to merge."""
    found = {name: _resolve_handle(value) for name, value in keywords.items()}
    return tuple(map(_resolve_handle, args)), found


def _resolve_handle(value: Any) -> Any:
    return value.sync if isinstance(value, AsyncHandle) else value


def _wrap(owner: AsyncHandle[Any], value: Any, twin: str) -> Any:
    made = _TWINS.get(twin)
    return value if made is None else made(value, owner._threads)  # noqa: SLF001 — of one graph
