"""The bounded cache: what it evicts, by count and by bytes, and what counts as a use."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lru_cache import LruCache

_KEYS = st.sampled_from("abcdef")
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _KEYS, st.integers(0, 9)),
        st.tuples(st.sampled_from(["get", "peek", "discard"]), _KEYS, st.just(0)),
    ),
    max_size=40,
)


@given(_STEPS, st.integers(1, 4), st.integers(0, 15))
def test_a_cache_keeps_what_was_used_last_within_its_bounds(
    steps: list[tuple[str, str, int]], count_max: int, bytes_max: int
) -> None:
    cache: LruCache[str, str] = LruCache(count_max, bytes_max=bytes_max)
    model: OrderedDict[str, int] = OrderedDict()
    for action, key, size in steps:
        expected = key.upper() if key in model else None
        match action:
            case "put":
                assert cache.put(key, key.upper(), size) == key.upper()
                model.pop(key, None)
                if size <= bytes_max:
                    model[key] = size
                while len(model) > count_max or sum(model.values()) > bytes_max:
                    model.popitem(last=False)
            case "get":
                assert cache.get(key) == expected
                if key in model:
                    model.move_to_end(key)
            case "peek":
                assert cache.peek(key) == expected
            case _:
                cache.discard(key)
                model.pop(key, None)
        assert cache.list_items() == [(each, each.upper()) for each in model]
        assert len(cache) == len(model)


def test_a_value_that_is_larger_than_the_cache_is_not_kept() -> None:
    cache: LruCache[str, bytes] = LruCache(bytes_max=10)
    cache.put("small", b"x", 1)
    assert cache.put("large", b"y" * 11, 11) == b"y" * 11
    assert cache.list_items() == [("small", b"x")]
    cache.put("small", b"x" * 10, 10)
    assert "small" in cache
    assert "large" not in cache
    cache.clear()
    assert len(cache) == 0
    cache.put("whole", b"z" * 10, 10)
    assert cache.list_items() == [("whole", b"z" * 10)]


def test_threads_share_a_cache() -> None:
    cache: LruCache[int, int] = LruCache(8)

    def use(start: int) -> None:
        for number in range(start, start + 2_000):
            cache.put(number % 13, number)
            cache.get((number + 5) % 13)
            cache.discard((number + 7) % 13)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(4)))
    assert len(cache) <= 8
    assert all(key == value % 13 for key, value in cache.list_items())
