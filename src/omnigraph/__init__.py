"""Omnigraph: a lakehouse graph database."""

from omnigraph import errors

__version__ = "0.1.0"

__all__ = ["__version__", "errors"]
