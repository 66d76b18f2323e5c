"""The query language, `.gq`."""
