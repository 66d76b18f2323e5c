"""Graphs with sample data, to begin with: a schema, its data and queries in a folder each.

sample_graphs   creates a graph of a template, and copies the files of one
people/         people, companies, and who knows whom
papers/         papers with texts and vectors, their authors and citations
memory/         what an agent remembers: sessions, messages, facts and their sources
"""

from omnigraph.templates.sample_graphs import (
    TEMPLATES,
    copy_template_files,
    create_from_template,
    require_template,
)

__all__ = ["TEMPLATES", "copy_template_files", "create_from_template", "require_template"]
