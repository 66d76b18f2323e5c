from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config.yaml_reader import Position
from omnigraph.errors import PipelineInvalidError, PipelineNotFoundError
from omnigraph.pipelines.config.definition import (
    Constant,
    EmbeddedText,
    Explode,
    Expression,
    FeedSource,
    FileSource,
    HttpSource,
    Interpolation,
    KafkaSource,
    PostgresSource,
    PythonSource,
    SparkSource,
    SqlSource,
)
from omnigraph.pipelines.config.definition_reader import (
    find_definition,
    list_definitions,
    read_pipeline,
)
from unit.pipelines.definitions import PEOPLE, read, with_map, written


def _problems(folder: Path, text: str) -> list[tuple[int, str]]:
    with pytest.raises(PipelineInvalidError) as caught:
        read(folder, text)
    return [(each.line, str(each).partition(": ")[2]) for each in caught.value.problems]


def test_a_definition_has_its_source_its_graphs_and_its_targets(tmp_path: Path) -> None:
    pipeline = read(tmp_path, PEOPLE)
    assert pipeline.name == "people"
    assert pipeline.sources == {"source": FileSource((str(tmp_path / "people.jsonl"),))}
    assert pipeline.graphs["company"].uri == str(tmp_path / "company.omni")
    (target,) = pipeline.targets
    assert (target.name, target.mode, target.run_branch) == ("company/main", "merge", None)
    typed = read(tmp_path, PEOPLE.replace("graph: company", "graph: graph.company"))
    assert typed.targets[0].name == target.name
    (rule,) = target.mapping.rules
    assert rule.values["handle"] == Expression("login", Position(9, 25))
    assert rule.values["level"] == Constant("senior", Position(9, 56))


def test_every_kind_of_source_is_read(tmp_path: Path) -> None:
    text = PEOPLE.replace(
        "source: {kind: files, paths: people.jsonl}",
        """
sources:
  files: {kind: s3-files, paths: ["s3://b/x/*.parquet", more.csv]}
  crm: {kind: postgres, url: "${CRM}", table: public.people, ranges: 4}
  api:
    kind: http
    url: http://localhost/people
    token: ${TOKEN}
    records: data.items
    paging: {cursor: next, param: after}
  other: {kind: graph, uri: other.omni, types: Person, ops: [insert]}
  log: {kind: kafka, servers: "h:1", topics: [a, b], options: {sasl.password: "${PW}"}}
  lake: {kind: spark, format: delta, paths: lake, options: {versionAsOf: "3"}}
  joined: {kind: sql, query: SELECT * FROM crm JOIN lake USING (id)}
  code: {kind: python, function: "my.rows:read", options: {since: "1"}}
""",
    ).replace("- type: Person", "- type: Person\n          source: crm")
    sources = read(tmp_path, text).sources
    assert sources["files"] == FileSource(("s3://b/x/*.parquet", str(tmp_path / "more.csv")))
    assert sources["crm"] == PostgresSource("${CRM}", table="public.people", ranges=4)
    api = sources["api"]
    assert isinstance(api, HttpSource)
    assert (api.records, api.paging.cursor, api.paging.param) == ("data.items", "next", "after")
    other = sources["other"]
    assert isinstance(other, FeedSource)
    assert (other.types, other.ops) == (("Person",), ("insert",))
    log = sources["log"]
    assert isinstance(log, KafkaSource)
    assert log.options == {"sasl.password": "${PW}"}
    assert sources["lake"] == SparkSource("delta", (str(tmp_path / "lake"),), {"versionAsOf": "3"})
    assert sources["joined"] == SqlSource("SELECT * FROM crm JOIN lake USING (id)")
    assert sources["code"] == PythonSource("my.rows:read", str(tmp_path), {"since": "1"})


def test_a_provider_is_a_source_by_name(tmp_path: Path) -> None:
    text = PEOPLE.replace(
        "source: {kind: files, paths: people.jsonl}",
        "providers: {source: {crm: {kind: postgres, url: '${CRM}', query: select 1}}}\n"
        "source: provider.source.crm",
    )
    assert read(tmp_path, text).sources == {"source": PostgresSource("${CRM}", query="select 1")}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("github", "'github' does not say what it is"),
        ("provider.storage.x", "'provider.storage.x' is not a provider of sources"),
        ("provider.source.x", "no provider of sources is called 'x'"),
        ("{kind: githup}", "source: 'githup' is not a kind of source"),
        ("{paths: x}", "source: 'kind' is missing"),
        ("{kind: postgres, url: 'postgresql://me:word@h/d', table: t}", "'url' holds a password"),
        ("{kind: http, url: 'http://h', token: abc}", "'token' holds a secret"),
        ("{kind: http, url: 'http://h?token=abc'}", "'url' holds a password"),
        ("{kind: graph, uri: 's3://a:b@h/g'}", "'uri' holds a password"),
        ("{kind: http, url: 'http://h', headers: {X-Api-Key: abc}}", "'X-Api-Key' holds a secret"),
        ("{kind: postgres, url: '${U}'}", "postgres: give either 'table' or 'query'"),
        ("{kind: http, url: 'http://h', paging: {}}", "paging: give one of link"),
        (
            "{kind: http, url: 'http://h', oauth: {token_url: t, client_id: a, client_secret: b}}",
            "'client_secret' holds a secret",
        ),
        (
            "{kind: spark, format: jdbc, options: {url: 'postgresql://me:word@h/d'}}",
            "'options: url' holds a password",
        ),
        ("{kind: spark, format: csv, options: {heder: x}}", "CSV has no option 'heder'"),
        ("{kind: python, function: rows}", "'rows' is not a function"),
    ],
)
def test_a_source_that_cannot_be_meant_is_refused(
    tmp_path: Path, source: str, message: str
) -> None:
    text = PEOPLE.replace("{kind: files, paths: people.jsonl}", source)
    ((line, told),) = _problems(tmp_path, text)
    assert line == 3
    assert message in told


def test_unknown_fields_are_told_with_their_lines_and_what_was_meant(tmp_path: Path) -> None:
    text = PEOPLE.replace("- graph: company", "- graph: compny\n    modus: merge") + "shedule: x\n"
    assert _problems(tmp_path, text) == [
        (5, "unknown graph 'compny' (did you mean 'company'?), at into[0]"),
        (6, "target: unknown field 'modus' (did you mean 'mode'?), at into[0].modus"),
        (11, "pipeline: unknown field 'shedule' (did you mean 'schedule'?), at shedule"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the file is empty"),
        ("a: [", 1, "this is not YAML"),
        ("- a", 1, "pipeline: expects fields"),
        (PEOPLE + "schedule: every hour\n", 10, "'every hour' is not a schedule"),
        (PEOPLE + "schedule: 61 * * * *\n", 10, "is not a schedule"),
        (PEOPLE + "retry: {attempts: 0}\n", 10, "expects: integer of at least 1"),
        (PEOPLE + "retry: {wait: soon}\n", 10, "expects: time span"),
        (PEOPLE + "name: a/b\n", 10, "'a/b' is not a name"),
        (PEOPLE + "source: {kind: files, paths: x}\n", 10, "'source' is given twice"),
        (
            PEOPLE.replace("{kind: files, paths: people.jsonl}", "{kind: sql, query: SELECT 1}"),
            1,
            "a query needs a source",
        ),
        (PEOPLE.replace("into:", "into: []\nx:"), 4, "a pipeline needs a target"),
        (PEOPLE.replace("map:", "mode: replace\n    map:"), 6, "'replace' is not a value of mode"),
        (PEOPLE.replace("map:", "on_error: quarantine\n    map:"), 6, "go together"),
        (PEOPLE.replace("map:", "run_branch: {name: x}\n    map:"), 6, "a name of its own"),
        (PEOPLE.replace("set:", "explode: items\n          set:"), 9, "'items' does not say"),
        (PEOPLE.replace("set:", "source: x\n          set:"), 9, "unknown source 'x'"),
        (PEOPLE.replace("login", "{template: 'a{b'}"), 9, "do not pair"),
        (PEOPLE.replace("login", "{value: 1, template: x}"), 9, "needs one way"),
        (PEOPLE.replace("login", "'(SELECT max(a) FROM b)'"), 9, "it has no subquery"),
        (
            PEOPLE.replace("set:", "where: id IN ( select 1 )\n          set:"),
            9,
            "it has no subquery",
        ),
        (
            PEOPLE.replace("set:", "chunk: {text: t, words: 2, overlap: 2}\n          set:"),
            9,
            "less",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, line: int, message: str) -> None:
    problems = _problems(tmp_path, text)
    assert any(at == line and message in told for at, told in problems), problems


def test_a_value_of_another_kind_is_told_once_and_an_alias_of_itself_ends(tmp_path: Path) -> None:
    ((line, told),) = _problems(tmp_path, PEOPLE.replace("graph: company", "graph: [company]"))
    assert (line, told) == (5, "target: 'graph' expects: text, at into[0].graph")
    around = PEOPLE.replace("into:", "into: &all").replace("map:", "branch: *all\n    map:")
    ((line, told),) = _problems(tmp_path, around)
    assert (line, "its aliases repeat too much" in told) == (5, True)


def test_two_targets_cannot_write_to_one_branch(tmp_path: Path) -> None:
    twice = PEOPLE + PEOPLE[PEOPLE.index("  - graph") :]
    ((line, told),) = _problems(tmp_path, twice)
    assert (line, told.partition(" (")[0]) == (
        10,
        "two targets write to branch 'main' of graph 'company'",
    )


def test_a_mapping_may_be_a_file_whose_problems_have_its_lines(tmp_path: Path) -> None:
    text = PEOPLE[: PEOPLE.index("map:")] + "map: people.map.yaml\n"
    good = "nodes:\n  - {type: Person, set: {handle: login}}\n"
    (tmp_path / "people.map.yaml").write_text(good)
    first = read(tmp_path, text)
    assert [rule.type_name for rule in first.targets[0].mapping.rules] == ["Person"]
    (tmp_path / "people.map.yaml").write_text(good.replace("login", "lower(login)"))
    assert read(tmp_path, text).digest != first.digest
    (tmp_path / "people.map.yaml").write_text(good + "egdes: []\n")
    with pytest.raises(
        PipelineInvalidError, match=r"people\.map\.yaml:3:1: map: unknown field 'egdes'"
    ):
        read(tmp_path, text)
    (tmp_path / "people.map.yaml").unlink()
    with pytest.raises(
        PipelineInvalidError, match=r"people\.map\.yaml:1:1: the file cannot be read"
    ):
        read(tmp_path, text)


def test_a_rule_has_values_of_every_kind(tmp_path: Path) -> None:
    rules = """
    nodes:
      - type: Person
        where: age > 3
        explode: [items as item, item.parts as part]
        chunk: {text: body, words: 5, overlap: 1}
        set:
          handle: {template: "{{x}}-{a.b}{c}"}
          name: {value: [1, two]}
          embedding: {embed: body}
    edges:
      - type: Serves
        from: part.login
        to: {region: r, account: a}
    """
    person, serves = read(tmp_path, with_map(rules)).targets[0].mapping.rules
    assert person.values["handle"] == Interpolation(("{x}-", "a.b", "", "c", ""), Position(13, 21))
    assert person.values["name"] == Constant([1, "two"], Position(14, 19))
    assert person.values["embedding"] == EmbeddedText("body", Position(15, 24))
    assert person.explode == (
        Explode("items", "item", Position(10, 11)),
        Explode("item.parts", "part", Position(10, 11)),
    )
    assert person.chunk is not None
    assert serves.ends is not None
    assert serves.ends[0].value == Expression("part.login", Position(18, 17))
    assert serves.ends[1].members == {
        "region": Expression("r", Position(19, 24)),
        "account": Expression("a", Position(19, 36)),
    }


def test_comments_and_order_do_not_change_a_digest_but_data_does(tmp_path: Path) -> None:
    first = read(tmp_path, PEOPLE)
    other = read(
        tmp_path,
        "# a comment\n"
        + PEOPLE.replace("handle: login, ", "").replace("name:", "handle: login, name:"),
    )
    assert other.digest == first.digest
    described = read(tmp_path, PEOPLE + "description: words\n")
    assert (described.digest == first.digest, described.content == first.content) == (False, True)
    mapped = read(tmp_path, PEOPLE.replace("login", "lower(login)"))
    assert mapped.content != first.content


def test_definitions_are_found_by_name_or_path(tmp_path: Path) -> None:
    path = written(tmp_path, PEOPLE)
    (tmp_path / "people.map.yaml").write_text("nodes: []\n")
    assert list_definitions(tmp_path) == [path]
    assert find_definition("people", tmp_path) == path
    assert read_pipeline(find_definition(str(path), Path("nowhere"))).name == "people"
    with pytest.raises(PipelineNotFoundError, match="pipeline 'peple' not found") as caught:
        find_definition("peple", tmp_path)
    assert caught.value.hint == "did you mean 'people'?"
    with pytest.raises(PipelineNotFoundError):
        find_definition("people", tmp_path / "nowhere")
