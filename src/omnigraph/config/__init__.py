"""Configuration files: strict YAML with places, references to the environment, digests.

In: texts of files. Out: sections with the position of every value, or every problem of a file at
once. Guarantee: unknown, missing, mistyped and doubled names are problems, never ignored; a value
of the environment is named and never stored; equal documents have equal digests.

    bounded_files     bytes of regular files of a bounded size
    yaml_reader       reads one section strictly, with the position of every value
    yaml_writer       prints a tree, the same for every spelling of it
    references        `${NAME}`: found, resolved, and hidden again in messages
    written_addresses what an address must not hold: users, passwords, tokens
    canonical_json    JSON values as bytes and digests
"""
