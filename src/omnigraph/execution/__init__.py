"""Evaluation of plans.

`text` analyses text the way full-text search sees it; every engine that searches uses it, so that
the presence of an index never changes an answer.
"""
