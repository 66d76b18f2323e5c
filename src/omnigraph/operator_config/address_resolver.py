"""Which graph is meant: by flags, then by variables of the environment, then by the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never
from urllib.parse import quote, unquote

from omnigraph.config.written_addresses import (
    ADDRESS_WITH_USER,
    examine_service_url,
    has_user,
)
from omnigraph.errors import AddressError
from omnigraph.operator_config.operator_settings import Binding, OperatorConfig, Profile

GRAPH_VARIABLE: Final = "OMNIGRAPH_GRAPH"
PROFILE_VARIABLE: Final = "OMNIGRAPH_PROFILE"
_SERVED_SCHEMES: Final = ("http", "https")
_GRAPHS: Final = "/graphs/"
# What addresses a graph by itself; the other flags narrow an address, or name a set of them.
_PRIMITIVES: Final = ("uri", "store", "server", "cluster")


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The storage of one graph; `origin` says what decided it."""

    uri: str
    origin: str

    def __str__(self) -> str:
        return self.uri

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return "://" not in self.uri or self.uri.startswith("file://")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, and a graph of it if one is chosen."""

    base: str
    graph: str | None
    origin: str

    def __str__(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        """The address of requests."""
        base = self.base.rstrip("/")
        return base if self.graph is None else f"{base}{_GRAPHS}{quote(self.graph, safe='')}"

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return False


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """The root of a cluster, and a graph of it if one is chosen."""

    root: str
    graph: str | None
    origin: str

    def __str__(self) -> str:
        return self.root if self.graph is None else f"{self.root} (graph {self.graph})"


Address: TypeAlias = StoreAddress | ServerAddress | ClusterAddress


@dataclass(frozen=True, slots=True)
class AddressFlags:
    """What a command or a call says about its graph.

    `uri` is the argument without a name; `spelling` is how the others are shown in messages.
    """

    uri: str | None = None
    store: str | None = None
    server: str | None = None
    cluster: str | None = None
    graph: str | None = None
    profile: str | None = None
    spelling: str = "--{}"
    # What is taken in place of a graph, for the error that lists the ways.
    otherwise: str = ""

    def spell(self, name: str) -> str:
        """A flag as the user writes it."""
        return self.spelling.format(name)

    def list_given(self) -> list[str]:
        """The flags that address a graph by themselves, in order."""
        return [name for name in _PRIMITIVES if getattr(self, name) is not None]


def resolve(flags: AddressFlags, environment: Mapping[str, str], config: OperatorConfig) -> Address:
    """The one address that is meant, or an error that lists the ways to give one."""
    given = flags.list_given()
    if len(given) > 1:
        shown = [_show_flag(flags, name) for name in given[:2]]
        raise AddressError(f"{shown[0]} and {shown[1]} are mutually exclusive: give one of them")
    if given:
        return _resolve_given(flags, given[0], config)
    found = find_default(flags, environment, config)
    if found is None:
        raise AddressError("no graph is addressed", hint=_list_ways(flags))
    return found


def find_default(
    flags: AddressFlags, environment: Mapping[str, str], config: OperatorConfig
) -> Address | None:
    """The address without a flag that gives one by itself: by a profile, a variable or a default.

    A profile that is asked for wins over both variables; these exclude each other, so that none of
    them sends a write to a graph that the other one hides.
    """
    graph, profile = environment.get(GRAPH_VARIABLE), environment.get(PROFILE_VARIABLE)
    if flags.profile is not None:
        return _resolve_profile(flags, flags.profile, flags.spell("profile"), config)
    if graph and profile:
        raise AddressError(
            f"${GRAPH_VARIABLE} and ${PROFILE_VARIABLE} both select a graph",
            hint=f"unset one of them, or give {flags.spell('profile')} or {flags.spell('store')}",
        )
    if graph:
        return _make_store(flags, graph, f"${GRAPH_VARIABLE}")
    if profile:
        return _resolve_profile(flags, profile, f"${PROFILE_VARIABLE}", config)
    if config.default_server is not None:
        base = find_server(config.default_server, config)
        graph_id = flags.graph or config.default_graph
        return ServerAddress(base, graph_id, config.origin_of("defaults.server"))
    if config.default_store is not None:
        origin = config.origin_of("defaults.store")
        return _make_store(flags, config.locate(config.default_store), origin)
    return None


def is_served(uri: str) -> bool:
    """Whether a text is the address of a server."""
    return uri.partition("://")[0].lower() in _SERVED_SCHEMES and "://" in uri


def split_served(url: str, graph: str | None, origin: str) -> ServerAddress:
    """A server and its graph from one URL, such as `https://h/graphs/kb`."""
    _require_clean(url, origin)
    base, separator, last = url.rstrip("/").rpartition(_GRAPHS)
    if separator and last and "/" not in last:
        found = unquote(last)
        if graph is not None and graph != found:
            raise AddressError(f"{url} is already one graph", hint="leave the other one out")
        return ServerAddress(base, found, origin)
    return ServerAddress(url, graph, origin)


def _resolve_given(flags: AddressFlags, name: str, config: OperatorConfig) -> Address:
    value: str = getattr(flags, name)
    origin = flags.spell(name) if name != "uri" else "the argument"
    match name:
        case "server":
            return ServerAddress(find_server(value, config), flags.graph, origin)
        case "cluster":
            root = config.find_root(value) if value in config.clusters else value
            _require_clean(root, origin)
            if is_served(root):
                raise AddressError(
                    f"{root} is the address of a server, and not of a cluster's storage",
                    hint=f"address a server with {flags.spell('server')}",
                )
            return ClusterAddress(root, flags.graph, origin)
        case _:
            return _make_store(flags, value, origin)


def _require_clean(address: str, origin: str) -> None:
    """Refuse an address with a user or a password, before anything prints it."""
    if has_user(address):
        hint = "a token of a server is kept by `omnigraph login`, keys of S3 in the environment"
        raise AddressError(f"{origin}: {ADDRESS_WITH_USER}", hint=hint)


def _make_store(flags: AddressFlags, uri: str, origin: str) -> StoreAddress:
    _require_clean(uri, origin)
    if flags.graph is not None:
        raise AddressError(
            f"{uri} is already one graph, so {flags.spell('graph')} cannot choose another",
            hint=f"leave out {flags.spell('graph')}, or address a server or a cluster",
        )
    if is_served(uri):
        raise AddressError(
            f"{uri} is the address of a server, and not of a graph's storage",
            hint=f"address a server with {flags.spell('server')}; a storage-native address is a"
            " path, file:// or s3://",
        )
    if not uri.strip():
        raise AddressError(f"{origin} is empty", hint=_list_ways(flags))
    return StoreAddress(uri, origin)


def _resolve_profile(
    flags: AddressFlags, name: str, origin: str, config: OperatorConfig
) -> Address:
    if name not in config.profiles:
        raise AddressError(
            f"no profile has the name '{name}' ({origin})", hint=_list_known(config.profiles)
        )
    profile = config.profiles[name]
    binding = require_binding(profile)
    graph = flags.graph or profile.default_graph
    line = f"{origin}, {config.origin_of(f'profiles.{name}')}"
    match binding:
        case Binding.SERVER:
            return ServerAddress(find_server(profile.target, config), graph, line)
        case Binding.CLUSTER:
            return ClusterAddress(config.find_root(profile.target), graph, line)
        case Binding.STORE:
            return _make_store(flags, config.locate(profile.target), line)
        case _:
            assert_never(binding)


def require_binding(profile: Profile) -> Binding:
    """What a profile is bound to; one that is bound to nothing, or twice, is refused on use."""
    if profile.binding is None:
        raise AddressError(f"profile '{profile.name}' cannot be used: {profile.error}")
    return profile.binding


def find_server(value: str, config: OperatorConfig) -> str:
    """The address of a server that is given by its name or by its address."""
    if "://" in value:
        if problem := examine_service_url(value):
            raise AddressError(f"this is not the address of a server: {problem}")
        return value
    if value not in config.servers:
        hint = f"{_list_known(config.servers)}; an address begins with http:// or https://"
        raise AddressError(f"no server has the name '{value}'", hint=hint)
    return config.servers[value]


def _show_flag(flags: AddressFlags, name: str) -> str:
    value = getattr(flags, name)
    return str(value) if name == "uri" else f"{flags.spell(name)} {value}"


def _list_known(known: Mapping[str, object]) -> str:
    return f"known are {', '.join(sorted(known))}" if known else "the config declares none"


def _list_ways(flags: AddressFlags) -> str:
    spell = flags.spell
    return (
        f"give {spell('store')} URI, {spell('server')} NAME with {spell('graph')} ID, or"
        f" {spell('profile')} NAME; or set ${GRAPH_VARIABLE}, or defaults in the operator config"
        f"{'; or give ' if flags.otherwise else ''}{flags.otherwise}"
    )
