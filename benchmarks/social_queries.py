"""The questions to a social network, each in the language of every engine.

A question has one meaning: every text orders its rows completely, so that answers can be compared.
The texts for peers are the fastest that were found: joins after aggregates, and path counts as
products of degrees. Persons are numbers for the peers, and texts such as `p17` for us.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

Value = str | int | list[int]


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask: a text for us, one for SQL, one for Cypher, and parameters by name."""

    name: str
    about: str
    gq: str
    sql: str
    cypher: str
    params: dict[str, Value] = field(default_factory=dict)


NINE: Final = (
    Question(
        "q1",
        "the three most-followed persons",
        """query q1() {
  match { $p: Person $f follows $p }
  return { $p.@id as id, $p.name as name, count($f) as n }
  order { n desc, id }
  limit 3
}""",
        """SELECT p.id, p.name, n
FROM (SELECT "to", count(*) AS n FROM follows GROUP BY "to" ORDER BY n DESC, "to" LIMIT 3)
JOIN person p ON p.id = "to" ORDER BY n DESC, p.id""",
        """MATCH (f:Person)-[:Follows]->(p:Person)
RETURN p.id AS id, p.name AS name, count(*) AS n ORDER BY n DESC, id LIMIT 3""",
    ),
    Question(
        "q2",
        "the city of the most-followed person",
        """query q2() {
  match { $p: Person $f follows $p $p livesIn $c }
  return { $p.@id as id, $p.name as name, count($f) as n, $c.city as city,
    $c.state as state, $c.country as country }
  order { n desc, id }
  limit 1
}""",
        """SELECT p.id, p.name, n, c.city, c.state, c.country
FROM (SELECT "to", count(*) AS n FROM follows GROUP BY "to" ORDER BY n DESC, "to" LIMIT 1) t
JOIN person p ON p.id = t."to" JOIN livesin l ON l."from" = p.id JOIN city c ON c.id = l."to\"""",
        """MATCH (f:Person)-[:Follows]->(p:Person)
WITH p, count(*) AS n ORDER BY n DESC, p.id LIMIT 1
MATCH (p)-[:LivesIn]->(c:City) RETURN p.id, p.name, n, c.city, c.state, c.country""",
    ),
    Question(
        "q3",
        "the five youngest cities of a country",
        """query q3($country: String) {
  match { $o: Country { country: $country } $s stateIn $o $c cityIn $s $p livesIn $c }
  return { $c.city as city, avg($p.age) as mean }
  order { mean, city }
  limit 5
}""",
        """SELECT c.city, avg(p.age) AS mean FROM person p
JOIN livesin l ON l."from" = p.id JOIN city c ON c.id = l."to"
JOIN cityin ci ON ci."from" = c.id JOIN statein si ON si."from" = ci."to"
JOIN country o ON o.id = si."to"
WHERE o.country = $country GROUP BY c.city ORDER BY mean, c.city LIMIT 5""",
        """MATCH (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(:State)-[:StateIn]->(o:Country)
WHERE o.country = $country
RETURN c.city AS city, avg(p.age) AS mean ORDER BY mean, city LIMIT 5""",
        {"country": "United States"},
    ),
    Question(
        "q4",
        "persons per country in an age band",
        """query q4($low: I64, $high: I64) {
  match { $p: Person $p.age >= $low $p.age <= $high $p livesIn $c $c cityIn $s $s stateIn $o }
  return { $o.country as country, count($p) as n }
  order { n desc, country }
  limit 3
}""",
        """SELECT o.country, count(*) AS n FROM person p
JOIN livesin l ON l."from" = p.id JOIN cityin ci ON ci."from" = l."to"
JOIN statein si ON si."from" = ci."to" JOIN country o ON o.id = si."to"
WHERE p.age >= $low AND p.age <= $high GROUP BY o.country ORDER BY n DESC, o.country LIMIT 3""",
        """MATCH (p:Person)-[:LivesIn]->(:City)-[:CityIn]->(:State)-[:StateIn]->(o:Country)
WHERE p.age >= $low AND p.age <= $high
RETURN o.country AS country, count(*) AS n ORDER BY n DESC, country LIMIT 3""",
        {"low": 30, "high": 40},
    ),
    Question(
        "q5",
        "men of one city with one interest",
        """query q5($interest: String, $gender: String, $city: String, $country: String) {
  match {
    $i: Interest { interest: $interest }
    $p: Person { gender: $gender }
    $p hasInterest $i
    $c: City { city: $city, country: $country }
    $p livesIn $c
  }
  return { count($p) as n }
}""",
        """SELECT count(*) AS n FROM person p
JOIN hasinterest h ON h."from" = p.id JOIN interest i ON i.id = h."to"
JOIN livesin l ON l."from" = p.id JOIN city c ON c.id = l."to"
WHERE i.interest = $interest AND p.gender = $gender AND c.city = $city AND c.country = $country""",
        """MATCH (c:City)<-[:LivesIn]-(p:Person)-[:HasInterest]->(i:Interest)
WHERE i.interest = $interest AND p.gender = $gender AND c.city = $city AND c.country = $country
RETURN count(*) AS n""",
        {
            "interest": "Fine Dining",
            "gender": "male",
            "city": "London",
            "country": "United Kingdom",
        },
    ),
    Question(
        "q6",
        "the cities with most women of one interest",
        """query q6($interest: String, $gender: String) {
  match {
    $i: Interest { interest: $interest }
    $p: Person { gender: $gender }
    $p hasInterest $i
    $p livesIn $c
  }
  return { $c.city as city, $c.country as country, count($p) as n }
  order { n desc, city, country }
  limit 5
}""",
        """SELECT c.city, c.country, count(*) AS n FROM person p
JOIN hasinterest h ON h."from" = p.id JOIN interest i ON i.id = h."to"
JOIN livesin l ON l."from" = p.id JOIN city c ON c.id = l."to"
WHERE i.interest = $interest AND p.gender = $gender
GROUP BY c.city, c.country ORDER BY n DESC, c.city, c.country LIMIT 5""",
        """MATCH (c:City)<-[:LivesIn]-(p:Person)-[:HasInterest]->(i:Interest)
WHERE i.interest = $interest AND p.gender = $gender
RETURN c.city AS city, c.country AS country, count(*) AS n ORDER BY n DESC, city, country
LIMIT 5""",
        {"interest": "Tennis", "gender": "female"},
    ),
    Question(
        "q7",
        "the state with most young people of one interest",
        """query q7($interest: String, $country: String, $low: I64, $high: I64) {
  match {
    $i: Interest { interest: $interest }
    $s: State { country: $country }
    $c cityIn $s
    $p livesIn $c
    $p.age >= $low
    $p.age <= $high
    $p hasInterest $i
  }
  return { $s.state as state, $s.country as country, count($p) as n }
  order { n desc, state }
  limit 1
}""",
        """SELECT s.state, s.country, count(*) AS n FROM person p
JOIN livesin l ON l."from" = p.id JOIN cityin ci ON ci."from" = l."to"
JOIN state s ON s.id = ci."to"
JOIN hasinterest h ON h."from" = p.id JOIN interest i ON i.id = h."to"
WHERE s.country = $country AND p.age >= $low AND p.age <= $high AND i.interest = $interest
GROUP BY s.state, s.country ORDER BY n DESC, s.state LIMIT 1""",
        """MATCH (s:State)<-[:CityIn]-(:City)<-[:LivesIn]-(p:Person)-[:HasInterest]->(i:Interest)
WHERE s.country = $country AND p.age >= $low AND p.age <= $high AND i.interest = $interest
RETURN s.state AS state, s.country AS country, count(*) AS n ORDER BY n DESC, state LIMIT 1""",
        {"interest": "Photography", "country": "United States", "low": 23, "high": 30},
    ),
    Question(
        "q8",
        "how many two-hop paths there are",
        """query q8() {
  match { $a: Person $a follows $b $b follows $c }
  return { count($c) as n }
}""",
        """SELECT sum(i.n * o.n) AS n
FROM (SELECT "to" AS id, count(*) AS n FROM follows GROUP BY "to") i
JOIN (SELECT "from" AS id, count(*) AS n FROM follows GROUP BY "from") o ON i.id = o.id""",
        "MATCH (:Person)-[:Follows]->(:Person)-[:Follows]->(:Person) RETURN count(*) AS n",
    ),
    Question(
        "q9",
        "two-hop paths by the ages on them",
        """query q9($below: I64, $above: I64) {
  match { $a: Person $a follows $b $b follows $c $b.age < $below $c.age > $above }
  return { count($c) as n }
}""",
        """SELECT sum(i.n * o.n) AS n
FROM (SELECT f."to" AS id, count(*) AS n FROM follows f JOIN person b ON b.id = f."to"
  WHERE b.age < $below GROUP BY f."to") i
JOIN (SELECT f."from" AS id, count(*) AS n FROM follows f JOIN person c ON c.id = f."to"
  WHERE c.age > $above GROUP BY f."from") o ON i.id = o.id""",
        """MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person)
WHERE b.age < $below AND c.age > $above RETURN count(*) AS n""",
        {"below": 50, "above": 25},
    ),
)

# Questions about one person, whose number is the parameter `who`.
ONE_PERSON: Final = (
    Question(
        "point",
        "one person",
        """query point($who: String) {
  match { $p: Person { slug: $who } }
  return { $p.name as name, $p.age as age }
}""",
        "SELECT name, age FROM person WHERE id = $who",
        "MATCH (p:Person {id: $who}) RETURN p.name, p.age",
    ),
    Question(
        "1-hop",
        "whom one person follows",
        """query one_hop($who: String) {
  match { $p: Person { slug: $who } $p follows $f }
  return { $f.@id as id }
}""",
        'SELECT "to" AS id FROM follows WHERE "from" = $who',
        "MATCH (p:Person {id: $who})-[:Follows]->(f:Person) RETURN f.id",
    ),
    Question(
        "{2,2}",
        "how many are two steps away, and no fewer",
        """query two_hops($who: String) {
  match { $p: Person { slug: $who } $p follows{2,2} $f }
  return { count($f) as n }
}""",
        """WITH one AS (SELECT "to" AS id FROM follows WHERE "from" = $who)
SELECT count(DISTINCT f."to") AS n FROM one JOIN follows f ON f."from" = one.id
WHERE f."to" <> $who AND f."to" NOT IN (SELECT id FROM one)""",
        """MATCH (p:Person {id: $who})-[e:Follows* SHORTEST 1..2]->(f:Person)
WHERE length(e) = 2 RETURN count(*) AS n""",
    ),
    Question(
        "{1,3}",
        "how many are at most three steps away",
        """query three_hops($who: String) {
  match { $p: Person { slug: $who } $p follows{1,3} $f }
  return { count($f) as n }
}""",
        """WITH one AS (SELECT "to" AS id FROM follows WHERE "from" = $who),
two AS (SELECT DISTINCT f."to" AS id FROM one JOIN follows f ON f."from" = one.id),
three AS (SELECT DISTINCT f."to" AS id FROM two JOIN follows f ON f."from" = two.id)
SELECT count(*) AS n
FROM (SELECT id FROM one UNION SELECT id FROM two UNION SELECT id FROM three) WHERE id <> $who""",
        """MATCH (p:Person {id: $who})-[:Follows* SHORTEST 1..3]->(f:Person)
RETURN count(*) AS n""",
    ),
)
