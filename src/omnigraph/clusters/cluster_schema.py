"""Every section of `cluster.yaml`: its fields, and what they mean."""

from __future__ import annotations

from typing import Final

from omnigraph.config.yaml_reader import FieldKind, FieldSpec, SectionSchema

VERSION: Final = 1
RESERVED: Final = ("apply", "env_file", "embeddings", "aliases", "bindings")
_RESERVED_FIELDS: Final = tuple(
    FieldSpec(name, FieldKind.ANY, "Reserved for later versions.") for name in RESERVED
)

CLUSTER: Final = SectionSchema(
    "cluster",
    "The file `cluster.yaml` of a folder.",
    (
        FieldSpec("version", FieldKind.INTEGER, "The version of the format: 1.", True),
        FieldSpec("metadata", FieldKind.SECTION, "What the cluster is called."),
        FieldSpec("storage", FieldKind.ANY, "The storage root; the folder itself if absent."),
        FieldSpec("state", FieldKind.SECTION, "How the state is kept."),
        FieldSpec("providers", FieldKind.SECTION, "Services that graphs and pipelines use."),
        FieldSpec("graphs", FieldKind.NAMED, "The graphs by id."),
        FieldSpec("policies", FieldKind.NAMED, "The policy bundles by name."),
        FieldSpec("pipelines", FieldKind.NAMED, "The definitions of pipelines, files, by name."),
        FieldSpec("ui", FieldKind.SECTION, "What the web interface shows."),
        *_RESERVED_FIELDS,
    ),
)
METADATA: Final = SectionSchema(
    "metadata",
    "What the cluster is called.",
    (FieldSpec("name", FieldKind.ANY, "A label, for people."),),
)
STATE: Final = SectionSchema(
    "state",
    "How the state is kept.",
    (
        FieldSpec("backend", FieldKind.TEXT, "Where: `cluster`.", False, "cluster"),
        FieldSpec("lock", FieldKind.BOOLEAN, "Whether verbs take the lock.", False, True),
    ),
)
PROVIDERS: Final = SectionSchema(
    "providers",
    "Services that graphs and pipelines use.",
    (
        FieldSpec("embedding", FieldKind.NAMED, "Embedding providers by name."),
        FieldSpec("source", FieldKind.NAMED, "Sources of pipelines by name."),
    ),
)
PROVIDER: Final = SectionSchema(
    "embedding provider",
    "Who turns texts into vectors.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`openai-compatible`, `openai`, `gemini`, `local`, …"),
        FieldSpec("provider", FieldKind.TEXT, "Another name of `kind`."),
        FieldSpec("base_url", FieldKind.TEXT, "The address of the service."),
        FieldSpec("model", FieldKind.TEXT, "The model."),
        FieldSpec("api_key", FieldKind.TEXT, "A variable, such as `${OPENAI_API_KEY}`."),
        FieldSpec("auth", FieldKind.TEXT, "`none` for a service without keys."),
        FieldSpec("path", FieldKind.TEXT, "The folder or package of a `local` model."),
    ),
)
GRAPH: Final = SectionSchema(
    "graph",
    "A graph.",
    (
        FieldSpec("schema", FieldKind.TEXT, "Its schema, a `.pg` file.", True),
        FieldSpec("queries", FieldKind.ANY, "Its stored queries: folders, files, or by name."),
        FieldSpec("embedding_provider", FieldKind.TEXT, "The provider of its vectors."),
        FieldSpec("embed", FieldKind.TEXT, "When vectors are made: `never`, `write` or `later`."),
        FieldSpec("external_blobs", FieldKind.SECTION, "Which external blobs it may name."),
        FieldSpec("streaming", FieldKind.ANY, "Removed."),
    ),
)
EXTERNAL_BLOBS: Final = SectionSchema(
    "external_blobs",
    "Which external blobs a graph may name.",
    (FieldSpec("allow", FieldKind.SECTIONS, "Bases with their scope.", False, ()),),
)
POLICY: Final = SectionSchema(
    "policy",
    "A policy bundle and what it is bound to.",
    (
        FieldSpec("file", FieldKind.TEXT, "The bundle, a YAML file.", True),
        FieldSpec("applies_to", FieldKind.TEXTS, "Graph ids, or `cluster`.", False, ()),
    ),
)
UI: Final = SectionSchema(
    "ui",
    "What the web interface shows.",
    (FieldSpec("dashboards", FieldKind.NAMED, "The dashboards, files, by name."),),
)
