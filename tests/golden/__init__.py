"""Stores that programs of their time wrote: every later program reads, checks and writes them.

`golden_archive` packs and unpacks them with what was read from them then; `write_format_1` and
`write_format_2` wrote them.
"""
