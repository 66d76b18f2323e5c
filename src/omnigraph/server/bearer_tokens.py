"""Bearer tokens: where they come from, and whose a presented one is.

Only hashes are kept. A presented token is compared with all of them, each in constant time, so
that the time of an answer says nothing about any token.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from omnigraph.errors import CredentialsError

SINGLE: Final = "OMNIGRAPH_SERVER_BEARER_TOKEN"
FILE: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
INLINE: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
SECRET: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"  # noqa: S105 — the name of a variable
DEFAULT_ACTOR: Final = "default"
_SCHEME: Final = b"Bearer "


@dataclass(frozen=True, slots=True)
class BearerTokens:
    """The hash of each token, and the actor that it stands for."""

    hashes: tuple[tuple[bytes, str], ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.hashes)

    def find_actor(self, token: bytes) -> str | None:
        """The actor of a token; all hashes are compared, whether or not one was found."""
        presented = hashlib.sha256(token).digest()
        found = None
        for known, actor in self.hashes:
            if hmac.compare_digest(known, presented):
                found = actor
        return found


def parse_header(value: bytes) -> bytes | None:
    """The token of an `Authorization` header, whose scheme is written exactly so."""
    token = value.removeprefix(_SCHEME)
    return token if len(token) < len(value) and token else None


def read_tokens(environment: Mapping[str, str]) -> BearerTokens:
    """The tokens that the environment names; what is wrong with them is an error, never skipped."""
    if environment.get(SECRET):
        raise CredentialsError(
            f"{SECRET} is set, but this build reads no secrets of AWS",
            hint=f"mount the secret as a file, and name that in {FILE}",
        )
    pairs: list[tuple[str, str]] = []
    if (single := environment.get(SINGLE)) is not None:
        pairs.append((DEFAULT_ACTOR, single))
    if path := environment.get(FILE):
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise CredentialsError(f"{FILE}: the file cannot be read: {reason}") from None
        pairs += _parse_pairs(text, FILE)
    elif inline := environment.get(INLINE):
        pairs += _parse_pairs(inline, INLINE)
    return build_tokens(pairs)


def build_tokens(pairs: list[tuple[str, str]]) -> BearerTokens:
    """Hashes of tokens by actor; no message of an error shows a token."""
    hashes: dict[bytes, str] = {}
    actors: set[str] = set()
    for name, value in pairs:
        actor, token = name.strip(), value.strip()
        if not actor or not token:
            blank = "an actor" if not actor else f"the token of '{actor}'"
            raise CredentialsError(f"{blank} is blank")
        if actor in actors:
            raise CredentialsError(f"actor '{actor}' has two tokens")
        digest = hashlib.sha256(token.encode()).digest()
        if digest in hashes:
            raise CredentialsError(f"'{actor}' and '{hashes[digest]}' have the same token")
        actors.add(actor)
        hashes[digest] = actor
    return BearerTokens(tuple(hashes.items()))


def _parse_pairs(text: str, source: str) -> list[tuple[str, str]]:
    try:
        pairs = json.loads(text, object_pairs_hook=lambda found: found)
    except ValueError:
        raise CredentialsError(f"{source}: it is not JSON") from None
    is_object = isinstance(pairs, list) and all(isinstance(each, tuple) for each in pairs)
    if not is_object or not all(isinstance(token, str) for _, token in pairs):
        raise CredentialsError(f'{source}: write a JSON object {{"actor": "token"}}')
    return list(pairs)
