"""The embedder of a provider that is configured for one graph, and not for a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnigraph.config.references import resolve_text
from omnigraph.embedding.configured_embedder import ConfiguredEmbedder
from omnigraph.embedding.embedding_profile import Provider

# The variable that each provider reads its key from.
_KEYS: Final = {
    Provider.OPENAI_COMPATIBLE: "OPENROUTER_API_KEY",
    Provider.OPENAI: "OPENAI_API_KEY",
    Provider.GEMINI: "GEMINI_API_KEY",
}
_SETTINGS: Final = {
    "base_url": "OMNIGRAPH_EMBED_BASE_URL",
    "model": "OMNIGRAPH_EMBED_MODEL",
}


def build_embedder(
    profile: Mapping[str, str], environment: Mapping[str, str]
) -> ConfiguredEmbedder:
    """The embedder of a profile; a reference without a value is a `SecretMissingError`."""
    provider = Provider(profile.get("kind") or profile.get("provider") or "openai-compatible")
    settings = {name: value for name, value in environment.items() if name.startswith("OMNIGRAPH_")}
    settings["OMNIGRAPH_EMBED_PROVIDER"] = provider.value
    for field, name in _SETTINGS.items():
        if field in profile:
            settings[name] = resolve_text(profile[field], environment)
    if "api_key" in profile and provider in _KEYS:
        settings[_KEYS[provider]] = resolve_text(profile["api_key"], environment)
    return ConfiguredEmbedder(settings)
