"""The model of a property: its vectors are compared with those of no other one."""

from __future__ import annotations

from omnigraph.embedding.embedder import NamedEmbedder
from omnigraph.errors import EmbeddingError
from omnigraph.schema.catalog import Property


def require_model(property_: Property, embedder: object) -> None:
    """Refuse an embedder whose model is not the one that made the vectors of a property."""
    recorded = None if property_.embed is None else property_.embed.model
    if recorded is None or not isinstance(embedder, NamedEmbedder) or embedder.model == recorded:
        return
    raise EmbeddingError(
        f"the vectors of '{property_.name}' were made by the model '{recorded}', "
        f"and the embedder uses '{embedder.model}'",
        reason="wrong_model",
        hint="set OMNIGRAPH_EMBED_MODEL to the recorded model",
    )


def require_recorded_model(property_: Property, type_name: str) -> None:
    """Refuse to fill vectors by themselves where the schema does not say by which model."""
    if property_.embed is not None and property_.embed.model is None:
        source = property_.embed.source
        raise EmbeddingError(
            f"the vectors of {type_name}.{property_.name} cannot be made: @embed names no model",
            reason="no_model",
            hint=f'write @embed({source}, model="…") in the schema, or write with embed "never"',
        )
