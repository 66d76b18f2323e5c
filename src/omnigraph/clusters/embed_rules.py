"""Whether the vectors of a graph can be made when its config says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnigraph.embedding.embedder import EmbedMode
from omnigraph.schema.catalog import Catalog


def find_embed_problems(mode: str, load: Callable[[], Catalog | None]) -> Iterator[tuple[str, str]]:
    """The code and the message of each problem; the schema is read only if it matters."""
    if mode not in set(EmbedMode):
        yield "invalid_embed_mode", f"embed is one of {', '.join(EmbedMode)}"
        return
    catalog = None if mode == EmbedMode.NEVER else load()
    for name, type_ in sorted(catalog.nodes.items()) if catalog is not None else ():
        for property_ in type_.properties.values():
            path = f"{name}.{property_.name}"
            if property_.embed is None:
                continue
            if property_.embed.model is None:
                hint = f'write @embed({property_.embed.source}, model="…")'
                yield "embedding_model_required", f"{path} names no model: {hint}"
            if mode == EmbedMode.LATER and not property_.type.is_nullable:
                problem = f"{path} is required, so that its vector cannot be made later"
                yield "embedding_vector_required", f"{problem}: make it nullable, or embed: write"
