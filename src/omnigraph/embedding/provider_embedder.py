"""The embedder of a provider that is configured for one graph, and not for a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnigraph.config.references import resolve_text
from omnigraph.embedding.configured_embedder import ConfiguredEmbedder
from omnigraph.embedding.embedding_profile import Provider

# The variable that each provider reads its key from.
_KEYS: Final[Mapping[str, str]] = {
    Provider.OPENAI_COMPATIBLE: "OPENROUTER_API_KEY",
    Provider.OPENAI: "OPENAI_API_KEY",
    Provider.GEMINI: "GEMINI_API_KEY",
}
_SETTINGS: Final = {
    "base_url": "OMNIGRAPH_EMBED_BASE_URL",
    "model": "OMNIGRAPH_EMBED_MODEL",
    "auth": "OMNIGRAPH_EMBED_AUTH",
    "path": "OMNIGRAPH_EMBED_PATH",
}
# What a profile may hold besides its kind.
PROFILE_FIELDS: Final = (*_SETTINGS, "api_key")


def build_embedder(
    profile: Mapping[str, str], environment: Mapping[str, str]
) -> ConfiguredEmbedder:
    """The embedder of a profile; a reference without a value is a `SecretMissingError`."""
    provider = profile.get("kind") or profile.get("provider") or Provider.OPENAI_COMPATIBLE.value
    settings = {name: value for name, value in environment.items() if name.startswith("OMNIGRAPH_")}
    settings["OMNIGRAPH_EMBED_PROVIDER"] = provider
    for field, name in _SETTINGS.items():
        if field in profile:
            settings[name] = resolve_text(profile[field], environment)
    if "api_key" in profile:
        settings[_KEYS.get(provider, "OMNIGRAPH_EMBED_API_KEY")] = resolve_text(
            profile["api_key"], environment
        )
    return ConfiguredEmbedder(settings)
