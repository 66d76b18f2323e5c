"""Random patterns with equalities between variables, beside what all random queries have."""

from __future__ import annotations

from unit.query.random_queries import QueryWriter


class PatternWriter(QueryWriter):
    """Writes one random query; no compiler refuses it."""

    def _filter(self, known: list[str], depth: int) -> str:
        if self._random.random() < 0.5:
            return super()._filter(known, depth)
        people = [name for name in known if name.startswith("p")]
        first, second = self._random.choice(people), self._random.choice(people)
        number, other = self._number(known), self._number(known)
        return self._random.choice(
            [
                f"{number} = {other}",
                f"{number} <= {other}",
                f"${first}.nick = ${second}.nick",
                f"${first}.nick < ${second}.name",
                f"${first}.@id = ${second}.nick",
                f"${first}.@id != ${second}.@id",
                f"${first}.name = ${second}.@id",
                f"${first}.name != ${second}.name",
                f"(${first}.age > 1) = (${second}.age > 1)",
            ]
        )

    def _binding(self, known: list[str], depth: int) -> str:
        """A second component now and then, joined by one or two equalities."""
        if self._random.random() < 0.6:
            return super()._binding(known, depth)
        people = [name for name in known if name.startswith("p")]
        first = self._random.choice(people)
        fresh = self._fresh("p")
        known.append(fresh)
        joined = self._random.sample(
            [
                f"${fresh}.age = ${first}.age",
                f"${first}.nick = ${fresh}.nick",
                f"${fresh}.name = ${first}.@id",
                f"${fresh}.@id = ${first}.name",
                f"(${fresh}.age = 2) = (${first}.age = 2)",
            ],
            k=self._random.choice([1, 2]),
        )
        return f"${fresh}: Person  {'  '.join(joined)}"
