"""`omnigraph spark`: whether this machine can run Spark, and how fast it starts."""

from __future__ import annotations

from importlib.metadata import version

import typer

from omnigraph.cli.command_registry import add_group, register_command
from omnigraph.cli.global_options import Capability
from omnigraph.cli.shared_options import JSON
from omnigraph.cli.spark_options import import_spark_module
from omnigraph.cli.views.answer_views import Fields, show


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "spark", "Look at what Spark runs on.")
    register_command(below, Capability.LOCAL)(warm)
    register_command(below, Capability.LOCAL)(info)


def warm(is_json: JSON = False) -> None:
    """Make the cache with which Spark starts in half the time; takes a minute or more."""
    made = import_spark_module("java_runtime").build_startup_cache()
    if made is None:
        sentence = "this Java is too old for a start-up cache; Spark runs without"
    else:
        sentence = f"made the start-up cache {made}"
    show(Fields({"cache": None if made is None else str(made)}, sentence), is_json=is_json)


def info(is_json: JSON = False) -> None:
    """Print the versions of Spark and Java, and where they are."""
    java = import_spark_module("java_runtime")
    found, cache = java.find_java(), java.find_startup_cache()
    document = {
        "spark": version("pyspark"),
        "java": found.version,
        "java_home": str(found.home),
        "cache": None if cache is None else str(cache),
    }
    cached = "no start-up cache: `omnigraph spark warm` makes one" if cache is None else str(cache)
    sentence = f"Spark {document['spark']} on Java {found.version} ({found.home})\n{cached}"
    show(Fields(document, sentence), is_json=is_json)
