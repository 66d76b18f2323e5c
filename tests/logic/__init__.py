"""Runs `.gqt` logic tests: a file in, a pass or the first difference out.

In the order of control flow: `sections` cuts a file into sections, `parse` turns them into the
plain data of `case`, `generate` makes its generated data, `runner` plays its steps on a session of
an arm (`arms`), `verdict` judges each answer with `compare` and `errors`, `bless` rewrites the
expectations of a file from the answers.
"""
