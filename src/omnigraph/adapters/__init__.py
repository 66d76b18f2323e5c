"""A branch as the store of another framework, for programs that are written against it.

In: a branch, and the calls of a framework. Out: its own objects. Guarantee: a batch of a framework
is one commit, a search is one query. The rest of the package imports nothing from here, and a
module whose framework is not installed raises `LibraryMissingError`, which names its extra.

    property_graph    nodes and relations with labels and properties, as two types of a schema
    facets            properties as texts that a query can test for equality
    langchain         a vector store and a retriever of LangChain
    langchain_graphs  a graph store by the protocol of LangChain
    llama_index       a property graph store of LlamaIndex
"""

from omnigraph.adapters.property_graph import (
    PropertyGraph,
    PropertyNode,
    PropertyRelation,
    build_property_graph_schema,
)

__all__ = ["PropertyGraph", "PropertyNode", "PropertyRelation", "build_property_graph_schema"]
