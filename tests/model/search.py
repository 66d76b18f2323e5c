"""Text predicates and scores."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from omnigraph.rows.text_analysis import analyze_text, is_within
from omnigraph.schema.property_values import round_to_f32

_K1, _B = 1.2, 0.75


def matches(text: str | None, query: str | None, edits: int) -> bool:
    """Whether some token of the text is within so many edits of some token of the query."""
    tokens, wanted = analyze_text(text or ""), analyze_text(query or "")
    return any(is_within(token, want, edits) for token in tokens for want in wanted)


def bm25(field: Mapping[str, str | None], query: str | None) -> dict[str, float]:
    """The score of each entity of a whole field that has a token of the query, by id."""
    texts = {id_: text for id_, text in field.items() if text is not None}
    documents = {id_: Counter(analyze_text(text)) for id_, text in texts.items()}
    lengths = {id_: document.total() for id_, document in documents.items()}
    scores: dict[str, float] = {}
    for token in sorted(set(analyze_text(query or ""))):
        found = {id_: document[token] for id_, document in documents.items() if token in document}
        rarity = math.log(1 + (len(documents) - len(found) + 0.5) / (len(found) + 0.5))
        for id_, frequency in found.items():
            relative_length = lengths[id_] * len(lengths) / sum(lengths.values())
            norm = _K1 * (1 - _B + _B * relative_length)
            score = rarity * frequency * (_K1 + 1) / (frequency + norm)
            scores[id_] = scores.get(id_, 0.0) + score
    return {id_: round_to_f32(score) for id_, score in scores.items()}


def squared_distance(left: Sequence[float], right: Sequence[float]) -> float:
    """The squared L2 distance of two vectors."""
    pairs = zip(left, map(round_to_f32, right), strict=True)
    return round_to_f32(sum((a - b) ** 2 for a, b in pairs))


def fuse(arms: Iterable[Sequence[str]], k: int) -> dict[str, float]:
    """Reciprocal rank fusion of rankings, each a list of ids with the best first."""
    scores: dict[str, float] = {}
    for arm in arms:
        for rank, id_ in enumerate(arm, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (k + rank)
    return scores
