"""Tokens by server: a file that only its owner may read, and the token that a request carries.

The file has a section for each server, `[name]`, with a line `token = …`, or `keyring = yes` if the
keyring of the system holds it. Whatever else the file says is kept as it is.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from omnigraph.errors import CredentialsError
from omnigraph.operator_config import keychain
from omnigraph.operator_config.operator_home import CREDENTIALS_NAME

BEARER_VARIABLE: Final = "OMNIGRAPH_BEARER_TOKEN"
TOKEN_VARIABLE_PREFIX: Final = "OMNIGRAPH_TOKEN_"  # noqa: S105 — the name of a variable
_SECTION: Final = re.compile(r"\s*\[(?P<name>[^\]]*)\]\s*")
_SETTING: Final = re.compile(r"\s*(?P<key>[^\s=#\[]+)\s*=\s*(?P<value>.*?)\s*")
_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# What a header may carry: a token with any other character would never arrive as it is.
_TOKEN_TEXT: Final = re.compile(r"[\x21-\x7e]+")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE_FOLDER: Final = 0o700
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and what it was taken from; the token itself is never shown."""

    value: str = field(repr=False)
    origin: str


class CredentialsFile:
    """The tokens of a user, in `credentials` of the folder of the operator."""

    def __init__(self, home: Path | None) -> None:
        if home is None:
            raise CredentialsError(
                "there is no folder for credentials", hint="set $OMNIGRAPH_HOME to one"
            )
        self.path = home / CREDENTIALS_NAME

    def find_token(self, server: str) -> Token | None:
        """The token of a server, if one is stored."""
        settings: dict[str, str] = {}
        for section, line in _iter_sections(self._read_text()):
            found = _SETTING.fullmatch(line)
            if section == server and found is not None:
                settings[found["key"]] = _unquote_value(found["value"])
        if settings.get("keyring", "").lower() in ("yes", "true"):
            held = keychain.find_token(server)
            origin = f"keyring, for [{server}] of {self.path}"
            return None if held is None else _take_token(held, origin)
        value = settings.get("token")
        return _take_token(value, f"[{server}] of {self.path}") if value else None

    def store_token(self, server: str, token: str, *, in_keyring: bool = False) -> None:
        """Keep a token in place of the one that the server had."""
        require_server_name(server)
        _require_token(token)
        with self._lock():
            text = self._read_text()
            if in_keyring:
                # First the keyring: a section that names it must find the token there.
                keychain.store_token(server, token)
            line = "keyring = yes" if in_keyring else f"token = {token}"
            self._replace_text(_replace_section(text, server, f"[{server}]\n{line}\n"))
            if not in_keyring and _is_in_keyring(text, server):
                keychain.remove_token(server)

    def remove_token(self, server: str) -> None:
        """Forget the token of a server; without one, nothing happens."""
        require_server_name(server)
        if not self.path.exists():
            return
        with self._lock():
            text = self._read_text()
            if _is_in_keyring(text, server):
                keychain.remove_token(server)
            rest = _replace_section(text, server, "")
            if rest != text:
                self._replace_text(rest)

    def _read_text(self) -> str:
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & _OTHERS:
                    raise CredentialsError(
                        f"{self.path} can be read by others", hint=f"run `chmod 600 {self.path}`"
                    )
                return file.read().decode()
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError as failure:
            raise CredentialsError(f"{self.path} is not UTF-8 text") from failure
        except OSError as failure:
            raise CredentialsError(f"{self.path}: {failure.strerror}") from failure

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the file against other processes; the lock file stays, so that it is always one."""
        try:
            self.path.parent.mkdir(_PRIVATE_FOLDER, parents=True, exist_ok=True)
            with self.path.with_name(f"{self.path.name}.lock").open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield
        except OSError as failure:
            raise CredentialsError(f"{self.path}: {failure.strerror}") from failure

    def _replace_text(self, text: str) -> None:
        """Replace the file in one step: a crash leaves the old text or the new one."""
        target = self.path.resolve()
        # The temporary file is private from its first moment on.
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def require_server_name(name: str) -> None:
    """Refuse a name that cannot stand for a server."""
    if _SERVER_NAME.fullmatch(name) is None:
        raise CredentialsError(
            f"{name!r} cannot be the name of a server",
            hint="a name has letters, digits, '.', '_' and '-'",
        )


def name_token_variable(server: str) -> str:
    """The variable of the environment that holds the token of a server."""
    return TOKEN_VARIABLE_PREFIX + server.upper().replace("-", "_")


def find_token(
    url: str, *, servers: Mapping[str, str], environment: Mapping[str, str], home: Path | None
) -> Token | None:
    """The token that a request to a URL carries; that of a server goes to no other address.

    `servers` are addresses by name. A server counts if its address begins that of the request at
    the boundary of a path; of several, the longest.
    """
    server = match_server(url, servers)
    if server is not None:
        variable = name_token_variable(server)
        if environment.get(variable):
            return _take_token(environment[variable], f"${variable}")
        stored = None if home is None else CredentialsFile(home).find_token(server)
        if stored is not None:
            return stored
    bearer = environment.get(BEARER_VARIABLE)
    return _take_token(bearer, f"${BEARER_VARIABLE}") if bearer else None


def _take_token(value: str, origin: str) -> Token:
    """A token that a request can carry; white space around it comes from files and pipes."""
    token = value.strip()
    if _TOKEN_TEXT.fullmatch(token) is None:
        raise CredentialsError(
            f"the token of {origin} is empty, or has characters that a request cannot carry"
        )
    return Token(token, origin)


def match_server(url: str, servers: Mapping[str, str]) -> str | None:
    """The name of the server that a URL belongs to."""
    request = urlsplit(url)
    matching = {
        name: urlsplit(base).path.rstrip("/")
        for name, base in servers.items()
        if _begins(urlsplit(base), request)
    }
    return max(matching, key=lambda name: len(matching[name]), default=None)


def _begins(base: SplitResult, request: SplitResult) -> bool:
    """Whether a request goes to a server, or below it."""
    path = base.path.rstrip("/")
    is_below = request.path == path or request.path.startswith(f"{path}/")
    # Steps upwards lead out of the path that the address begins with.
    leads_out = ".." in unquote(request.path).split("/")
    return _endpoint_of(base) == _endpoint_of(request) and is_below and not leads_out


def _endpoint_of(url: SplitResult) -> tuple[str, str, int | str | None]:
    scheme = url.scheme.lower()
    try:
        port: int | str | None = url.port or _DEFAULT_PORTS.get(scheme)
    except ValueError:
        # Not a number: such an address belongs to nothing but itself.
        port = url.netloc
    return scheme, (url.hostname or "").lower(), port


def _require_token(token: str) -> None:
    if _TOKEN_TEXT.fullmatch(token) is None:
        raise CredentialsError(
            "the token is empty, or has characters that a request cannot carry",
            hint="give the token alone, as one line",
        )


def _iter_sections(text: str) -> Iterator[tuple[str | None, str]]:
    """The lines of a text, each with the name of its section."""
    section = None
    for line in text.splitlines(keepends=True):
        found = _SECTION.fullmatch(line)
        if found is not None:
            section = found["name"].strip()
        yield section, line


def _replace_section(text: str, server: str, replacement: str) -> str:
    """The text with another section for a server; all other lines are as they were."""
    kept = ""
    is_placed = False
    for section, line in _iter_sections(text):
        if section != server:
            kept += line
        elif not is_placed:
            kept += replacement
            is_placed = True
    if is_placed or not replacement:
        return kept
    return f"{kept}{'' if not kept or kept.endswith(chr(10)) else chr(10)}{replacement}"


def _is_in_keyring(text: str, server: str) -> bool:
    lines = (line for section, line in _iter_sections(text) if section == server)
    return any((found := _SETTING.fullmatch(line)) and found["key"] == "keyring" for line in lines)


def _unquote_value(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
