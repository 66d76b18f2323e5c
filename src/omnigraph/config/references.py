"""Values that files take from the environment: `${NAME}`.

A file never holds a secret: it names one. Reading and planning do not need the values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from omnigraph.errors import SecretMissingError

_NAME: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

# Of a URL, and of the `name=value` pairs that PostgreSQL takes instead of one.
_PARAMETER: Final = re.compile(
    r"""(?:^|[?&;\s])([\w.-]+)\s*=\s*('(?:[^'\\]|\\.)*'|"[^"]*"|[^&;\s]*)"""
)

# How the names of secrets end, whatever a service puts before: `X-Amz-Signature`, `api_key`. A
# `key` alone, or one to sort by, is none.
_SECRET_ENDINGS: Final = (
    "accesskey",
    "apikey",
    "passwd",
    "password",
    "pwd",
    "secret",
    "secretkey",
    "signature",
    "subscriptionkey",
    "token",
)
_SECRET_NAMES: Final = frozenset(["sig"])

# Shorter values are parts of too many words to be hidden in texts.
_HIDDEN_CHARS_MIN: Final = 4


def find_names(text: str) -> tuple[str, ...]:
    """The names that a text refers to."""
    return tuple(_NAME.findall(text))


def is_reference(text: str) -> bool:
    """Whether a text is nothing but one `${NAME}`."""
    return _NAME.fullmatch(text.strip()) is not None


def contains_password(address: str) -> bool:
    """Whether an address spells out a password instead of naming it, or a parameter that is one."""
    try:
        password = urlsplit(address).password
    except ValueError:
        return False
    given = [value for name, value in _PARAMETER.findall(address) if _is_secret(name)]
    values = (strip_quotes(each) for each in (password, *given) if each)
    return any(each and not _NAME.fullmatch(each) for each in values)


def _is_secret(parameter: str) -> bool:
    name = re.sub(r"[^a-z]", "", parameter.lower())
    return name in _SECRET_NAMES or name.endswith(_SECRET_ENDINGS)


def strip_quotes(value: str) -> str:
    """A value without the quotes around it."""
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def resolve_text(text: str, environment: Mapping[str, str]) -> str:
    """The text with every name replaced by its value; a name without a value is an error."""
    missing = find_missing_names([text], environment)
    if missing:
        raise SecretMissingError(missing)
    return _NAME.sub(lambda found: environment[found[1]], text)


def hide_values(text: str, values: Mapping[str, str]) -> str:
    """The text with every value replaced by the name it has, however the value is written."""
    names = {
        form: name
        for name, value in values.items()
        for form in _list_spellings(value)
        if len(form) >= _HIDDEN_CHARS_MIN
    }
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first))
    return re.sub(pattern, lambda found: f"${{{names[found[0]]}}}", text)


def _list_spellings(value: str) -> Iterator[str]:
    """A value as messages may write it, and the password of one that is an address."""
    try:
        password = urlsplit(value).password or ""
    except ValueError:
        password = ""
    for each in (value, value.strip(), password, unquote(password)):
        yield each
        yield quote(each)
        yield quote(each, safe="")
        yield repr(each)[1:-1]
        yield json.dumps(each)[1:-1]


def find_missing_names(texts: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """The names in texts that have no value, each once."""
    names = dict.fromkeys(name for text in texts for name in find_names(text))
    return [name for name in names if not environment.get(name)]
