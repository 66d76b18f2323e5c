"""What both languages share below their grammars.

In: a text. Out: a tuple of tokens, the comments between them, and a cursor that recursive-descent
parsers read from. Guarantee: any text becomes tokens (strange characters become `UNKNOWN` tokens),
in one linear pass, and parsing ends in diagnostics, never in a Python error.

Modules, in order of control flow: `mode`, `decode` (bytes to text), `tokens`, `lexer`, `cursor`
(reading, failing and recovering), `printing` (quoting, and laying comments back between printed
lines).
"""
