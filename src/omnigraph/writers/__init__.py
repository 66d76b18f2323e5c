"""Writes: what a load, a mutation or a migration does, validated, as one transaction."""
