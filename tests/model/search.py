"""Text predicates and scores."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from omnigraph.query.ast import Metric, TextFunction
from omnigraph.rows.text_analysis import (
    WORD,
    analyze_places,
    analyze_text,
    fold_text,
    is_within,
    split_words,
)
from omnigraph.schema.property_values import round_to_f32

_K1, _B = 1.2, 0.75


def matches(function: TextFunction, text: str | None, query: str | None, edits: int) -> bool | None:
    """Whether a text satisfies a predicate; null if either is."""
    if text is None or query is None:
        return None
    tokens, wanted = analyze_text(text), analyze_text(query)
    match function:
        case TextFunction.ALL_WORDS:
            return bool(wanted) and set(wanted) <= set(tokens)
        case TextFunction.PREFIX:
            start = fold_text(query)
            return bool(start) and any(word.startswith(start) for word in split_words(text))
        case TextFunction.PHRASE:
            return _has_phrase(analyze_places(text), analyze_places(query))
        case _:
            return any(is_within(token, want, edits) for token in tokens for want in wanted)


def _has_phrase(tokens: list[str], wanted: list[str]) -> bool:
    """Whether the wanted tokens follow each other; an empty one is any word, or none at an end."""
    while wanted and not wanted[-1]:
        wanted = wanted[:-1]
    while wanted and not wanted[0]:
        wanted = wanted[1:]
    starts = range(len(tokens) - len(wanted) + 1) if wanted else ()
    return any(
        all(not want or tokens[start + at] == want for at, want in enumerate(wanted))
        for start in starts
    )


def highlight(
    text: str | None,
    query: str | None,
    before: str | None,
    after: str | None,
    words: int | None,
) -> str | None:
    """The text with marks around the words of a query, of which so many are shown."""
    if text is None or query is None or (words is not None and words < 1):
        return None
    wanted, found = set(analyze_text(query)), list(WORD.finditer(text))
    hits = [bool(wanted & set(analyze_text(each.group()))) for each in found]
    start, end = 0, len(text)
    if words is not None and len(found) > words:
        first = max((hits.index(True) if True in hits else 0) - (words - 1) // 2, 0)
        first = min(first, len(found) - words)
        start = found[first].start() if first else 0
        end = found[first + words - 1].end() if first + words < len(found) else len(text)
    shown = text[start:end]
    for word, is_hit in reversed(list(zip(found, hits, strict=True))):
        if is_hit and start <= word.start() and word.end() <= end:
            marked = f"{'«' if before is None else before}{word.group()}"
            marked += "»" if after is None else after
            shown = shown[: word.start() - start] + marked + shown[word.end() - start :]
    return shown


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


def distance(metric: Metric, left: Sequence[float], right: Sequence[float]) -> float | None:
    """How far two vectors are from each other; a vector of zeros has no cosine."""
    pairs = list(zip(left, map(round_to_f32, right), strict=True))
    product = sum(a * b for a, b in pairs)
    match metric:
        case Metric.L2:
            return round_to_f32(sum((a - b) ** 2 for a, b in pairs))
        case Metric.DOT:
            return round_to_f32(0 - product)
        case Metric.COSINE:
            squares = sum(a * a for a, _ in pairs), sum(b * b for _, b in pairs)
            if not all(squares):
                return None
            sizes = math.sqrt(squares[0]) * math.sqrt(squares[1])
            return round_to_f32(1 - max(-1.0, min(1.0, product / sizes)))


def fuse(arms: Iterable[Sequence[str]], k: int) -> dict[str, float]:
    """Reciprocal rank fusion of rankings, each a list of ids with the best first."""
    scores: dict[str, float] = {}
    for arm in arms:
        for rank, id_ in enumerate(arm, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (k + rank)
    return scores
