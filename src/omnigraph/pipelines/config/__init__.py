"""Definitions of pipelines: YAML files become checked data.

In: YAML files, and the environment that secrets come from. Out: a `Pipeline`, or every problem of
the file with its position. Guarantee: unknown, missing and mistyped fields are problems, never
ignored; reading does not stop at the first problem; a definition never holds the value of a secret.

    definition_reader      finds definition files and reads a whole definition
    cluster_definition     definitions of a cluster, and the payloads they are stored as
    config_schema          every section and its fields; the reference page is generated from it
    definition_json_schema the same as JSON Schema, for editors
    source_reader          the sources of a definition
    mapping_reader         the mappings of a definition, or of a `.map.yaml` file
    expectations           what rules expect of their rows
    deletion_rules         what rules delete
    report_settings        whom runs notify, and how they are measured
    definition             a definition as frozen data, and its schedule
    slot_references        `${SLOT}`: the time that a run stands for
    secret_resolver        `${NAME}`, resolved from the environment when a run begins
    definition_validator   all checks of a definition: fields, schemas, expressions, columns
    text_encodings         strict decoding of files and records
"""
