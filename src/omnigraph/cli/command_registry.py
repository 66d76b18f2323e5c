"""Turns a function into a command: its groups of options, its scope and its failures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeAlias, get_type_hints

import typer

from omnigraph.cli.command_classes import PlainCommand, make_app
from omnigraph.cli.command_errors import exit_code_of
from omnigraph.cli.global_options import Capability, Flag, GlobalOptions, Scope
from omnigraph.cli.views import print_problems

# What verbs take of the scope.
NO_FLAGS: frozenset[Flag] = frozenset()
ACTOR = frozenset({Flag.AS})
ALL_FLAGS = frozenset(Flag)
READ_FLAGS = frozenset({Flag.SERVER, Flag.GRAPH, Flag.STORE, Flag.PROFILE})
WRITE_FLAGS = READ_FLAGS | ACTOR
STORAGE_FLAGS = frozenset({Flag.CLUSTER, Flag.GRAPH, Flag.STORE, Flag.PROFILE})
STORE_FLAGS = frozenset({Flag.STORE, Flag.PROFILE})
CONTROL_FLAGS = frozenset({Flag.CLUSTER, Flag.GRAPH, Flag.PROFILE})

# Any: a command's parameters are read from its signature, whatever they are.
Command: TypeAlias = Callable[..., Any]
_CONTEXT = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


def register_command(
    app: typer.Typer,
    capability: Capability,
    *,
    takes: frozenset[Flag] = NO_FLAGS,
    names: tuple[str, ...] = (),
) -> Callable[[Command], Command]:
    """Register a function as a command; a parameter `scope` receives the global flags.

    A parameter whose type is a dataclass stands for the options that its fields declare. The first
    of `names` is shown in help; without any, the command has the name of the function.
    """

    def register(function: Command) -> Command:
        wants_scope = "scope" in inspect.signature(function).parameters

        def run(ctx: typer.Context, scope: GlobalOptions, **arguments: object) -> None:
            whole, verb = _merge_options(ctx, scope), ctx.command_path.partition(" ")[2]
            whole.require_supported(verb, capability, takes)
            made = {"scope": Scope(whole, verb, capability, takes)} if wants_scope else {}
            _run_command(function, arguments | made)

        for position, name in enumerate(names or (None,)):
            command = expand_options(run, like=function)
            app.command(name, cls=PlainCommand, hidden=position > 0)(command)
        return function

    return register


def add_group(app: typer.Typer, name: str, help_text: str) -> typer.Typer:
    """A command with commands below it, which takes the global flags too."""
    below = make_app(help=help_text)

    def keep(ctx: typer.Context, scope: GlobalOptions) -> None:
        ctx.obj = _merge_options(ctx, scope)

    keep.__doc__ = help_text
    below.callback()(expand_options(keep))
    app.add_typer(below, name=name)
    return below


def add_command_group(
    app: typer.Typer,
    capability: Capability,
    *,
    name: str,
    takes: frozenset[Flag] = NO_FLAGS,
) -> Callable[[Command], typer.Typer]:
    """Make a function a command that has commands below it; without one of these, it runs."""

    def register(function: Command) -> typer.Typer:
        below = make_app(help=function.__doc__, invoke_without_command=True)

        def run(ctx: typer.Context, scope: GlobalOptions, **arguments: object) -> None:
            ctx.obj = whole = _merge_options(ctx, scope)
            if ctx.invoked_subcommand is None:
                whole.require_supported(name, capability, takes)
                _run_command(
                    function, {**arguments, "scope": Scope(whole, name, capability, takes)}
                )

        below.callback()(expand_options(run, like=function))
        app.add_typer(below, name=name)
        return below

    return register


def expand_options(function: Command, *, like: Command | None = None) -> Command:
    """The function with every group of options replaced by the options themselves.

    `like` declares the parameters that the function takes as `**arguments`.
    """
    groups: dict[str, Any] = {}  # Any: dataclasses of options
    parameters: dict[str, inspect.Parameter] = {}
    for parameter in _iter_parameters(function, like):
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters |= {option.name: option for option in _iter_options(parameter.annotation)}
        else:
            kept = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters[parameter.name] = kept

    def command(**arguments: object) -> None:
        for name, kind in groups.items():
            own = {option.name: arguments.pop(option.name) for option in fields(kind)}
            arguments[name] = kind(**own)
        function(**arguments)

    described = like or function
    command.__name__, command.__doc__ = described.__name__, described.__doc__
    command.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    # inspect reads this attribute, and the command library reads parameters through inspect.
    vars(command)["__signature__"] = inspect.Signature(list(parameters.values()))
    return command


def _iter_parameters(function: Command, like: Command | None) -> Iterator[inspect.Parameter]:
    if like is None:
        yield from inspect.signature(function, eval_str=True).parameters.values()
        return
    own = inspect.signature(like, eval_str=True).parameters
    yield from (each for name, each in own.items() if name != "scope")
    scope = inspect.Parameter("scope", inspect.Parameter.KEYWORD_ONLY, annotation=GlobalOptions)
    yield from (scope, _CONTEXT)


def _iter_options(kind: Any) -> Iterator[inspect.Parameter]:  # Any: a dataclass of options
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        yield inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[each.name],
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
        )


def _merge_options(ctx: typer.Context, given: GlobalOptions) -> GlobalOptions:
    return given.merge(ctx.obj) if isinstance(ctx.obj, GlobalOptions) else given


def _run_command(function: Command, arguments: dict[str, object]) -> None:
    try:
        function(**arguments)
    except KeyboardInterrupt as stop:
        print_problems(["interrupted"])
        raise typer.Exit(exit_code_of(stop)) from stop
