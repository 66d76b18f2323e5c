"""`omnigraph embed`: make the vectors of texts, in graphs and files, and say how far they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.command_registry import STORAGE_FLAGS, add_command_group, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import echo_write, guard_write, open_graph
from omnigraph.cli.shared_options import BRANCH, JSON, MAIN_BRANCH, POSITIONAL_URI
from omnigraph.cli.views.answer_views import show
from omnigraph.cli.views.vector_views import EmbeddedFile, Filled, Vectors

_WAIT = Annotated[
    bool,
    typer.Option("--wait", help="Wait for a provider that is down, and then go on."),
]
_TYPES = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only vectors of this type; may be repeated."),
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_command_group(app, Capability.DIRECT, name="embed", takes=STORAGE_FLAGS)(embed)
    register_command(below, Capability.DIRECT, takes=STORAGE_FLAGS)(status)


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Files of records that are embedded without a graph."""

    seed: Annotated[
        Path | None,
        typer.Option("--seed", help="A YAML manifest that names a seed file and its embeddings."),
    ] = None
    source: Annotated[
        Path | None, typer.Option("--input", help="A file of JSON lines to embed.")
    ] = None
    target: Annotated[
        Path | None, typer.Option("--output", help="The file to write, with vectors.")
    ] = None
    spec: Annotated[
        Path | None,
        typer.Option("--spec", help='JSON: {"dimension": N, "types": {Type: {target, fields}}}.'),
    ] = None
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="[TYPE:]FIELD=VALUE",
            help="Embed only these records, also those with a vector; may be repeated.",
        ),
    ] = None
    is_all: Annotated[
        bool, typer.Option("--reembed-all", help="Embed every record, also those with a vector.")
    ] = False
    is_clean: Annotated[
        bool, typer.Option("--clean", help="Remove vectors instead of making them.")
    ] = False

    @property
    def is_given(self) -> bool:
        """Whether files are embedded, and not a graph."""
        return self != FileOptions()


def embed(
    scope: Scope,
    files: FileOptions,
    branch: BRANCH = MAIN_BRANCH,
    types: _TYPES = None,
    waits: _WAIT = False,
    is_json: JSON = False,
) -> None:
    """Make the vectors of texts that wait for one, in a graph or in files of records."""
    if files.is_given:
        if types or waits or branch != MAIN_BRANCH:
            raise typer.BadParameter("--branch, --type and --wait are about graphs, not files")
        show(_embed_files(files), is_json=is_json)
        return
    address = scope.resolve_address()
    with open_graph(scope, address) as graph:
        place = graph.branch(branch)
        echo_write(scope, "embed", address)
        with guard_write(place):
            result = place.embed(wait=waits, types=types or None)
    show(Filled(address, result), is_json=is_json)


def _embed_files(options: FileOptions) -> EmbeddedFile:
    from omnigraph.embedding.embed_spec import (
        EmbedFiles,
        FileMode,
        parse_selection,
        read_seed,
        read_spec,
    )
    from omnigraph.embedding.record_files import embed_file
    from omnigraph.engine.resources import open_environment_texts

    if options.is_all and (options.is_clean or options.select):
        raise typer.BadParameter("--reembed-all excludes --clean and --select")
    if options.seed is not None:
        if options.source or options.target or options.spec:
            raise typer.BadParameter("--seed names the files: leave --input, --output, --spec out")
        files = read_seed(options.seed)
    elif options.source and options.target and options.spec:
        files = EmbedFiles(options.source, options.target, read_spec(options.spec))
    else:
        raise typer.BadParameter("give --seed, or --input, --output and --spec")
    mode = FileMode.REEMBED_SELECTED if options.select else FileMode.FILL_MISSING
    mode = FileMode.REEMBED_ALL if options.is_all else mode
    mode = FileMode.CLEAN if options.is_clean else mode
    outcome = embed_file(
        files,
        mode,
        texts=None if mode is FileMode.CLEAN else open_environment_texts(),
        selections=[parse_selection(text) for text in options.select or ()],
    )
    return EmbeddedFile(files.source, files.target, files.spec.dimension, outcome)


def status(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """List how many vectors are ready, pending and failed, by property."""
    address = scope.resolve_address(uri)
    with open_graph(scope, address) as graph:
        show(Vectors(address, graph.branch(branch).embed_status()), is_json=is_json)
