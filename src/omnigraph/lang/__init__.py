"""What both languages share below their grammars.

In: a text or bytes. Out: tokens with the comments between them, a cursor for recursive-descent
parsers, and diagnostics. Guarantee: any text becomes tokens in one linear pass (unexpected
characters become `UNKNOWN` tokens), and parsing ends in diagnostics, not in a Python error.

    tree_nodes         what nodes of trees are, built quickly
    source_text        a text, and spans and positions in it
    lexer              bytes to text, and text to tokens
    token_cursor       look-ahead, expectations, failures and recovery
    diagnostics        a finding about a text, and the collector of findings
    diagnostic_codes   the register of diagnostic codes
    spellcheck         the nearest known word to a misspelt one
    quoting            source text as messages show it
    diagnostic_views   a diagnostic as text and as JSON
    text_printer       quotes strings, and places comments between printed lines
"""
