"""`omnigraph login`, `logout`, `profile`, `config` and `alias`: what an operator has configured."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli.command_errors import fail
from omnigraph.cli.command_registry import ALL_FLAGS, add_group, register_command
from omnigraph.cli.global_options import Capability, Flag, Scope
from omnigraph.cli.graph_access import is_terminal
from omnigraph.cli.shared_options import JSON, RowFormat, read_json_object
from omnigraph.cli.views import print_json, print_lines
from omnigraph.cli.views.answer_views import Fields, show

if TYPE_CHECKING:
    from omnigraph.operator_config.credentials import CredentialsFile

_SERVER = Annotated[str, typer.Argument(metavar="NAME", help="A server of the operator config.")]
# In the order in which `alias` lists them.
_ALIAS_FLAGS: Final = (Flag.SERVER, Flag.GRAPH, Flag.STORE, Flag.CLUSTER, Flag.PROFILE, Flag.AS)


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    register_command(app, Capability.LOCAL)(login)
    register_command(app, Capability.LOCAL)(logout)
    profiles = add_group(app, "profile", "Look at the profiles of the operator config.")
    register_command(profiles, Capability.LOCAL, names=("list",))(list_)
    register_command(profiles, Capability.LOCAL, names=("show",))(show_profile)
    config = add_group(app, "config", "Look at the operator config.")
    register_command(config, Capability.LOCAL, takes=ALL_FLAGS, names=("show",))(show_config)
    register_command(app, Capability.SERVED, takes=ALL_FLAGS)(alias)


def login(
    scope: Scope,
    name: _SERVER,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", metavar="TOKEN", help="The token; without it, one line of standard input."
        ),
    ] = None,
    in_keyring: Annotated[
        bool, typer.Option("--keyring", help="Keep the token in the keyring of the system.")
    ] = False,
    is_json: JSON = False,
) -> None:
    """Store the token of a server, in a file that only you can read."""
    file = _open_credentials(scope)
    given = (_ask_token(name) if token is None else token).strip()
    if not given:
        fail("the token is empty", hint="give it with --token, or as one line of standard input")
    file.store_token(name, given, in_keyring=in_keyring)
    is_declared = name in scope.config.servers
    if not is_declared:
        typer.echo(
            f"note: {scope.config.path} declares no server '{name}' yet",
            err=True,
        )
    document = {"server": name, "credentials_path": str(file.path), "declared": is_declared}
    show(Fields(document, f"stored the token of {name} in {file.path}"), is_json=is_json)


def logout(scope: Scope, name: _SERVER, is_json: JSON = False) -> None:
    """Remove the token of a server; without one, nothing happens."""
    file = _open_credentials(scope)
    file.remove_token(name)
    document = {"server": name, "credentials_path": str(file.path)}
    show(Fields(document, f"{file.path} has no token of {name}"), is_json=is_json)


def list_(scope: Scope, is_json: JSON = False) -> None:
    """List the profiles, and what each of them stands for."""
    from omnigraph.cli.views.operator_views import ProfileList

    profiles = ProfileList(scope.config, _find_ambient_profile())
    if is_json:
        print_json(profiles.to_json())
    else:
        print_lines(profiles.to_lines())


def show_profile(
    scope: Scope,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The profile; without it, the one in force."),
    ] = None,
    is_json: JSON = False,
) -> None:
    """Say what a profile stands for, or what holds without one."""
    from omnigraph.cli.views.operator_views import OneProfile

    chosen = name or _find_ambient_profile()
    if chosen is not None and chosen not in scope.config.profiles:
        known = ", ".join(sorted(scope.config.profiles)) or "none"
        fail(f"no profile has the name '{chosen}'", hint=f"known are: {known}")
    show(OneProfile(scope.config, chosen), is_json=is_json)


def show_config(
    scope: Scope,
    has_origins: Annotated[
        bool, typer.Option("--origins", help="Also say what decided each value.")
    ] = False,
    is_json: JSON = False,
) -> None:
    """Say which graph, actor and output hold, for these flags and this environment."""
    from omnigraph.cli.views.operator_views import ConfigView

    view = ConfigView(scope.config, scope.build_flags(), scope.options.actor, os.environ)
    show(view if is_json or has_origins else view.without_origins(), is_json=is_json)


def alias(
    scope: Scope,
    output: RowFormat,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The alias.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="Its arguments, in order.")
    ] = None,
    params: Annotated[
        str | None, typer.Option("--params", metavar="JSON", help="Parameters, a JSON object.")
    ] = None,
    params_path: Annotated[
        Path | None,
        typer.Option("--params-file", metavar="PATH", help="Parameters, in a JSON file."),
    ] = None,
) -> None:
    """Run the stored query that an alias of the operator config stands for."""
    from omnigraph.cli.commands.query_commands import TableOptions, print_stored_rows
    from omnigraph.operator_config.alias_calls import build_call, find_alias

    _require_own_address(scope)
    found = find_alias(name, scope.config)
    chosen = output.choose(found.format or scope.config.output)
    given = read_json_object(params, params_path)
    call = build_call(found, arguments or [], given, scope.config)
    print_stored_rows(call, chosen, TableOptions().build_layout(scope.config))


def _require_own_address(scope: Scope) -> None:
    given = set(scope.options.iter_flags())
    offending = [each.spelling for each in _ALIAS_FLAGS if each in given]
    if offending:
        fail(
            f"'alias' does not take {', '.join(offending)}: the alias has an address of its own",
            hint="change the alias in the operator config, or run the query with `omnigraph query`",
        )


def _open_credentials(scope: Scope) -> CredentialsFile:
    from omnigraph.operator_config.credentials import CredentialsFile

    return CredentialsFile(scope.config.home)


def _ask_token(server: str) -> str:
    if is_terminal():
        import getpass

        return getpass.getpass(f"token of {server}: ")
    return "" if sys.stdin is None else sys.stdin.readline()


def _find_ambient_profile() -> str | None:
    from omnigraph.operator_config.address_resolver import PROFILE_VARIABLE

    return os.environ.get(PROFILE_VARIABLE) or None
