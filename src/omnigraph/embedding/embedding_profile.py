"""Which provider embeds texts, and how it is reached: read from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from omnigraph.errors import EmbeddingError


class Provider(StrEnum):
    """Who turns texts into vectors."""

    OPENAI_COMPATIBLE = "openai-compatible"
    OPENAI = "openai"
    GEMINI = "gemini"
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
    Provider.MOCK: _Defaults("", "", ()),
}
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
    """A provider with everything it needs; `repr` does not show the key."""

    provider: Provider
    base_url: str
    model: str
    key: str
    retry_policy: RetryPolicy = RetryPolicy()

    def __repr__(self) -> str:
        return f"Profile({self.provider}, {self.base_url!r}, {self.model!r})"


def read_profile(environment: Mapping[str, str]) -> Profile:
    """The profile that the environment describes."""
    provider = _read_provider(environment)
    defaults = _DEFAULTS[provider]
    base_url = environment.get(f"{_PREFIX}BASE_URL", "").strip() or defaults.base_url
    model = environment.get(f"{_PREFIX}MODEL", "").strip() or defaults.model
    if provider is Provider.MOCK:
        return Profile(provider, "", model, "")
    if urlsplit(base_url).scheme not in {"http", "https"}:
        raise _build_setting_error(
            "BASE_URL", base_url, "an address that starts with https:// or http://"
        )
    usual = RetryPolicy()
    patience = RetryPolicy(
        deadline_s=_read_milliseconds(environment, "DEADLINE_MS", usual.deadline_s),
        timeout_s=_read_milliseconds(environment, "TIMEOUT_MS", usual.timeout_s, minimum=1),
        attempts=_read_integer(environment, "RETRY_ATTEMPTS", usual.attempts, minimum=1),
        backoff_s=_read_milliseconds(environment, "RETRY_BACKOFF_MS", usual.backoff_s),
    )
    return Profile(
        provider, base_url.rstrip("/"), model, _read_key(environment, defaults, provider), patience
    )


def is_mock_forced(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for vectors without a model, whatever else it says."""
    return environment.get(_MOCK_FLAG, "").strip().lower() not in _NO


def _read_provider(environment: Mapping[str, str]) -> Provider:
    if is_mock_forced(environment):
        return Provider.MOCK
    name = environment.get(f"{_PREFIX}PROVIDER", "").strip() or Provider.OPENAI_COMPATIBLE
    try:
        return Provider(name)
    except ValueError:
        raise _build_setting_error("PROVIDER", name, f"one of {', '.join(Provider)}") from None


def _read_key(environment: Mapping[str, str], defaults: _Defaults, provider: Provider) -> str:
    known = {name: environment.get(name, "").strip() for name in defaults.keys}
    name, found = next(((name, key) for name, key in known.items() if key), ("", ""))
    if not (found.isascii() and found.isprintable()):
        raise EmbeddingError(
            f"{name} holds characters that no key has", reason="bad_setting", hint="copy it again"
        )
    if not found:
        raise EmbeddingError(
            f"the embedding provider '{provider}' needs a key, and there is none",
            reason="missing_key",
            hint=f"set {' or '.join(defaults.keys)}, or search by a vector",
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
