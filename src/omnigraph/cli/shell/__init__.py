"""The interactive shell: a graph that stays open, and a prompt that knows its schema.

In: an open graph and lines of text, from a terminal or from standard input. Out: what the commands
`query`, `mutate` and `explain` print. Guarantee: a mistake ends a line, never the shell; Ctrl-C
stops the query that runs.

    shell_input        whether a text is whole, and the declaration that a bare body stands for
    shell_session      what each input does: queries, statements, and commands with a backslash
    shell_completion   the words that may follow a text
    shell_prompt       the terminal: editing, history, completion
"""
