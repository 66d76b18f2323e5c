-- The questions of docs/guide/questions.md in SQL, each after its name; $names are parameters.

-- papers_by_status
SELECT status, count(*), avg(pages) FROM paper GROUP BY status ORDER BY status;

-- papers_by_year
SELECT year(publishedOn::date) AS y, count(*) FROM paper GROUP BY y ORDER BY y;

-- most_cited
SELECT p.doi, p.title, count(*) AS n FROM paper p JOIN cites c ON c.dst = p.doi
GROUP BY ALL ORDER BY n DESC, p.doi LIMIT 10;

-- busy_countries
SELECT i.country, count(DISTINCT w.dst) AS n
FROM wrote w JOIN affiliatedwith f ON f.src = w.src JOIN institution i ON i.ror = f.dst
GROUP BY i.country HAVING n > $n ORDER BY n DESC, i.country;

-- countries_of_papers
SELECT w.dst, count(DISTINCT i.country) AS n
FROM wrote w JOIN affiliatedwith f ON f.src = w.src JOIN institution i ON i.ror = f.dst
GROUP BY w.dst ORDER BY n DESC, w.dst;

-- open_shares
SELECT v.name, count(*) FILTER (p.openAccess) / count(*) AS share
FROM paper p JOIN publishedin i ON i.src = p.doi JOIN venue v ON v.slug = i.dst
GROUP BY v.name ORDER BY share DESC, v.name;

-- mean_authors
SELECT avg(n) FROM (
  SELECT p.doi, count(w.src) AS n FROM paper p LEFT JOIN wrote w ON w.dst = p.doi GROUP BY p.doi
);

-- page_statistics
SELECT median(pages), stddev_samp(pages), quantile_cont(pages, 0.9) FROM paper;

-- without_venue
SELECT doi FROM paper WHERE doi NOT IN (SELECT src FROM publishedin) ORDER BY doi;

-- venues_of_papers
SELECT p.doi, v.name
FROM paper p LEFT JOIN publishedin i ON i.src = p.doi LEFT JOIN venue v ON v.slug = i.dst
ORDER BY p.doi;

-- prolific
SELECT a.name FROM author a WHERE (SELECT count(*) FROM wrote w WHERE w.src = a.orcid) >= $n
ORDER BY a.name;

-- long_venues
SELECT v.name FROM venue v JOIN publishedin i ON i.dst = v.slug JOIN paper p ON p.doi = i.src
GROUP BY v.name HAVING avg(p.pages) > 22 ORDER BY v.name;

-- keywords
SELECT k, count(*) AS n FROM (SELECT unnest(keywords) AS k FROM paper) GROUP BY k ORDER BY n DESC, k;

-- with_keywords
SELECT doi FROM paper WHERE list_has_any(keywords, $list) ORDER BY doi;

-- many_keywords
SELECT doi, len(keywords) AS n FROM paper WHERE n > 3 ORDER BY n DESC, doi;

-- titles
SELECT title FROM paper
WHERE contains(lower(title), 'graph') OR regexp_matches(title, 'net(work)?s? [0-9]+$', 'i')
  OR ends_with(title, '?')
ORDER BY title;

-- most_cited_with_authors
SELECT c.doi, c.n, list(a.name ORDER BY w.position)
FROM (SELECT dst AS doi, count(*) AS n FROM cites GROUP BY dst ORDER BY n DESC, doi LIMIT 10) c
JOIN wrote w ON w.dst = c.doi JOIN author a ON a.orcid = w.src
GROUP BY c.doi, c.n ORDER BY c.n DESC, c.doi;

-- top_of_topics
SELECT t.name, b.src, (SELECT count(*) FROM cites c WHERE c.dst = b.src) AS n
FROM topic t JOIN about b ON b.dst = t.code
QUALIFY row_number() OVER (PARTITION BY t.code ORDER BY n DESC, b.src) <= 3
ORDER BY t.name, n DESC, b.src;

-- nearest_papers
SELECT p.doi, p.d, list(a.name ORDER BY a.name)
FROM (
  SELECT doi, list_sum(list_transform(list_zip(vec, $v), lambda x: (x[1] - x[2]) ** 2)) AS d
  FROM paper WHERE vec IS NOT NULL ORDER BY d LIMIT 5
) p
JOIN wrote w ON w.dst = p.doi JOIN author a ON a.orcid = w.src
GROUP BY p.doi, p.d ORDER BY p.d;

-- like_this
SELECT doi, list_cosine_distance(vec, (SELECT vec FROM paper WHERE doi = $d)) AS far
FROM paper WHERE doi <> $d AND vec IS NOT NULL ORDER BY far LIMIT 5;

-- catalogue
SELECT doi, title FROM paper ORDER BY title;

-- cited_within_three
WITH RECURSIVE reached(doi, hops) AS (
  SELECT dst, 1 FROM cites WHERE src = $d
  UNION SELECT c.dst, hops + 1 FROM reached r JOIN cites c ON c.src = r.doi WHERE hops < 3
)
SELECT DISTINCT doi FROM reached ORDER BY doi;

-- parts_of
WITH RECURSIVE part(code) AS (
  SELECT $c UNION SELECT s.src FROM part JOIN subtopicof s ON s.dst = part.code
)
SELECT t.name FROM part JOIN topic t ON t.code = part.code ORDER BY t.name;

-- distance
WITH RECURSIVE linked(a, b) AS (SELECT src, dst FROM cites UNION SELECT dst, src FROM cites),
reached(doi, hops) AS (
  SELECT b, 1 FROM linked WHERE a = $x
  UNION SELECT b, hops + 1 FROM reached JOIN linked ON a = doi WHERE hops < 8
)
SELECT min(hops) FROM reached WHERE doi = $y;

-- way
WITH RECURSIVE ways(doi, way) AS (
  SELECT $x, [$x] UNION ALL
  SELECT c.dst, list_append(way, c.dst) FROM ways JOIN cites c ON c.src = doi WHERE len(way) < 8
)
SELECT way FROM ways WHERE doi = $y ORDER BY len(way), way LIMIT 1;

-- co_author_steps
WITH RECURSIVE linked(a, b) AS (SELECT src, dst FROM wrote UNION SELECT dst, src FROM wrote),
ways(id, way) AS (
  SELECT $x, [$x] UNION ALL
  SELECT b, list_append(way, b) FROM ways JOIN linked ON a = id
  WHERE len(way) < 5 AND NOT list_contains(way, b)
)
SELECT (len(way) - 1) // 2, way FROM ways WHERE id = $y ORDER BY len(way), way LIMIT 1;

-- future_co_authors
SELECT c.name, count(DISTINCT b.src) AS through
FROM wrote p JOIN wrote b ON b.dst = p.dst JOIN wrote q ON q.src = b.src
JOIN wrote r ON r.dst = q.dst JOIN author c ON c.orcid = r.src
WHERE p.src = $x AND c.orcid <> $x AND NOT EXISTS (
  SELECT 1 FROM wrote m JOIN wrote n ON n.dst = m.dst WHERE m.src = $x AND n.src = c.orcid
)
GROUP BY c.orcid, c.name ORDER BY through DESC, c.name LIMIT 20;

-- self_citations
SELECT DISTINCT c.src, c.dst
FROM cites c JOIN wrote a ON a.dst = c.src JOIN wrote b ON b.dst = c.dst AND b.src = a.src
ORDER BY c.src, c.dst;

-- triangles
SELECT count(*) FROM cites x JOIN cites y ON y.src = x.dst JOIN cites z
ON z.src = x.src AND z.dst = y.dst;

-- retract
SELECT p.doi FROM paper p JOIN wrote w ON w.dst = p.doi WHERE w.src = $x ORDER BY p.doi;
