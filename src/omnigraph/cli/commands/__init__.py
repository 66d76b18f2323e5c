"""The commands: each module adds its functions to the command tree in `register`.

In: parsed option groups and the global options. Out: plain data, handed to `cli.views`. Guarantee:
a command prints its document only through `cli.views`.

In the order of their use:

    graph_commands       `init`, `snapshot`, `pins`, `export`, `check`
    schema_commands      `schema check`, `show`, `plan`, `apply`
    load_command         `load`
    query_commands       `query`, `explain`, `mutate`, and the statements of a text
    shell_command        `shell`
    lint_command         `lint`
    fmt_command          `fmt`
    branch_commands      `branch create`, `list`, `delete`, `merge`
    merge_commands       what `branch merge` does; `revert`, `cherry-pick`
    commit_commands      `commit`
    diff_command         `diff`
    changes_commands     `changes`, `commit changes`
    entity_commands      `history`, `blame`
    blob_commands        `blob`
    index_commands       `optimize`, `index status`, `index build`
    embed_command        `embed`, `embed status`
    retention_commands   `cleanup`, `repair`, `tag`
    pipeline_commands    `pipeline`
    worker_command       `worker`
    operator_commands    `login`, `logout`, `profile`, `config`, `alias`
    spark_commands       `spark warm`, `spark info`
"""
