"""`omnigraph pipeline`: validate, plan and run pipelines, and read their ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from omnigraph.cli.command_errors import FAILED, fail
from omnigraph.cli.command_registry import ACTOR, add_group, register_command
from omnigraph.cli.global_options import Capability, Flag, Scope
from omnigraph.cli.graph_access import handle_interrupts
from omnigraph.cli.pipeline_access import (
    DEFAULT_FOLDER,
    DefinitionPlace,
    build_spark_options,
    find_pipeline,
    find_pipelines,
    import_module,
)
from omnigraph.cli.shared_options import JSON
from omnigraph.cli.spark_options import SparkTarget
from omnigraph.cli.views import print_problems
from omnigraph.cli.views.answer_views import show
from omnigraph.cli.views.pipeline_views import (
    BackfilledSlots,
    PipelinePlan,
    PipelineRun,
    PipelineRuns,
    PipelineStatuses,
    PrunedRuns,
    ScheduledRuns,
    ValidatedPipelines,
)
from omnigraph.cli.views.progress_bars import show_load_bars
from omnigraph.durations import parse_duration
from omnigraph.error_codes import ErrorCode

if TYPE_CHECKING:
    from omnigraph.pipelines.config.definition import Pipeline
    from omnigraph.pipelines.config.secret_resolver import Resolver

_UNSURE: Final = "run it again: what is in the graph already is not written twice"
# A schedule that is followed looks at least this often, so that a clock that is set is seen.
_POLL_S: Final = 30.0

_NAME = Annotated[
    str, typer.Argument(metavar="NAME", help="The pipeline: its name, or the path of its file.")
]
_NAMES = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Pipelines; all of the folder.")
]
_FOLDER = Annotated[
    Path, typer.Option("--folder", metavar="PATH", help="The folder of the definitions.")
]
_CLUSTER: Final = frozenset({Flag.CLUSTER})

_TIMES: Final = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]
_APPROVE = Annotated[
    str | None,
    typer.Option(
        "--approve", metavar="DIGEST", help="The digest of a definition that overwrites data."
    ),
]


@dataclass(frozen=True, slots=True)
class SlotRange:
    """The slots of a backfill, and whether they may overwrite data."""

    start: Annotated[
        datetime,
        typer.Argument(metavar="FROM", formats=_TIMES, help="Slots that begin here or later, UTC."),
    ]
    end: Annotated[
        datetime,
        typer.Argument(metavar="TO", formats=_TIMES, help="Slots that end here or before, UTC."),
    ]
    approve: _APPROVE = None


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run stands for, who approved it, and whether it takes files as they come."""

    slot: Annotated[
        str | None,
        typer.Option(
            "--slot", metavar="TEXT", help="What the run stands for; one slot is written once."
        ),
    ] = None
    approve: _APPROVE = None
    is_full: Annotated[
        bool,
        typer.Option("--full", help="Read sources that are read by increments from the beginning."),
    ] = False
    is_stream: Annotated[
        bool, typer.Option("--stream", help="Take new files as they come, until interrupted.")
    ] = False
    is_available_now: Annotated[
        bool,
        typer.Option("--available-now", help="With --stream: stop after the data that is there."),
    ] = False

    def __post_init__(self) -> None:
        if self.is_available_now and not self.is_stream:
            raise typer.BadParameter("--available-now needs --stream")
        if self.is_stream and self.is_full:
            raise typer.BadParameter("--full and --stream exclude each other")
        if self.is_stream and self.slot is not None:
            raise typer.BadParameter("--slot and --stream exclude each other")


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "pipeline", "Load graphs from sources by definitions, on Spark.")
    register_command(below, Capability.DIRECT)(validate)
    register_command(below, Capability.DIRECT)(schema)
    register_command(below, Capability.DIRECT, takes=_CLUSTER)(plan)
    register_command(below, Capability.DIRECT, takes=_CLUSTER | ACTOR)(run)
    register_command(below, Capability.DIRECT, takes=_CLUSTER)(status)
    register_command(below, Capability.DIRECT, takes=_CLUSTER)(runs)
    register_command(below, Capability.DIRECT, takes=_CLUSTER)(prune)
    register_command(below, Capability.DIRECT, takes=_CLUSTER | ACTOR)(merge)
    register_command(below, Capability.DIRECT, takes=ACTOR)(schedule)
    register_command(below, Capability.DIRECT, takes=_CLUSTER | ACTOR)(backfill)


def validate(names: _NAMES = None, folder: _FOLDER = DEFAULT_FOLDER, is_json: JSON = False) -> None:
    """Check definitions: fields, types, properties, expressions; columns, where they are known.

    All problems of all files are listed at once. Spark is started on this machine if there are
    expressions to read; the columns of files are looked up, but no other source is asked.
    """
    validation = import_module("config.definition_validator")
    asked = names or map(str, _list_paths(None, folder))
    found = validation.validate_all(asked, folder)
    problems = [str(problem) for each in found for problem in each.problems]
    failure = ErrorCode.BAD_REQUEST if problems else None
    show(ValidatedPipelines(found), is_json=is_json, failure=failure)
    if failure:
        if not is_json:
            print_problems(problems)
        raise typer.Exit(FAILED)


def schema() -> None:
    """Print the JSON Schema of definitions, by which editors complete and check them."""
    built = import_module("config.definition_json_schema").build_json_schema()
    typer.echo(json.dumps(built, indent=2))


def plan(
    scope: Scope,
    name: _NAME,
    spark: SparkTarget,
    place: DefinitionPlace,
    records: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="N",
            min=1,
            help="Read so many records of each source, and count what rules make of them.",
        ),
    ] = None,
    is_json: JSON = False,
) -> None:
    """Show what a run would do: targets, columns, secrets that are not set, the next time.

    What `validate` checks is checked too, except the columns of files: without `--sample` no source
    is asked. Nothing is written.
    """
    review, now = import_module("run.pipeline_inspection"), datetime.now(UTC)
    if scope.is_addressed:
        found = review.plan_definition(find_pipeline(scope, name, place).pipeline, now)
    else:
        path = import_module("config.definition_reader").find_definition(name, place.definitions)
        found = review.plan_pipeline(path, now)
    failure = ErrorCode.BAD_REQUEST if found.validation.problems else None
    sample = None
    if records is not None and failure is None:
        sample = import_module("run.plan_sample").sample_pipeline(
            found.pipeline, records=records, spark_options=build_spark_options(spark)
        )
    show(PipelinePlan(found, sample), is_json=is_json, failure=failure)
    if failure:
        if not is_json:
            print_problems(map(str, found.validation.problems))
        raise typer.Exit(FAILED)


def run(
    scope: Scope,
    name: _NAME,
    occasion: RunRequest,
    spark: SparkTarget,
    place: DefinitionPlace,
    is_json: JSON = False,
) -> None:
    """Run a pipeline: one commit for each target, once for each slot."""
    found = find_pipeline(scope, name, place)
    with handle_interrupts(lambda: _UNSURE), show_load_bars() as bars:
        options = found.build_options(
            slot=occasion.slot,
            approve=occasion.approve,
            is_full=occasion.is_full,
            actor=scope.actor,
            spark=build_spark_options(spark),
            progress=bars.stages,
        )
        ended = _run_pipeline(found.pipeline, options, occasion)
    if occasion.is_stream:
        show(PipelineRuns(ended), is_json=is_json)
        return
    failure = None if ended.status == "succeeded" else ErrorCode.INTERNAL
    show(PipelineRun(ended), is_json=is_json, failure=failure)
    if failure:
        raise typer.Exit(FAILED)


def _run_pipeline(
    pipeline: Pipeline, options: Any, occasion: RunRequest
) -> Any:  # Any: as `_import_module`
    """The run, or those of a stream."""
    if not occasion.is_stream:
        return import_module("run.pipeline_run").run_pipeline(pipeline, options)
    stream = import_module("run.stream_run")
    return stream.stream_pipeline(pipeline, options, is_available_now=occasion.is_available_now)


def status(
    scope: Scope, place: DefinitionPlace, names: _NAMES = None, is_json: JSON = False
) -> None:
    """Show the last run of pipelines, and when they run again."""
    review, now = import_module("run.pipeline_inspection"), datetime.now(UTC)
    pipelines, problems = _find_pipelines(scope, names, place)
    found = []
    for each in pipelines:
        resolver = _make_resolver(each)
        with resolver.hide_secrets_in_errors():
            found.append(review.read_status(each, resolver, now))
    failure = ErrorCode.BAD_REQUEST if problems else None
    show(PipelineStatuses(found), is_json=is_json, failure=failure)
    if failure:
        print_problems(problems)
        raise typer.Exit(FAILED)


def runs(
    scope: Scope,
    name: _NAME,
    place: DefinitionPlace,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="The newest runs.")
    ] = 20,
    is_awaiting_review: Annotated[
        bool, typer.Option("--awaiting-review", help="Only runs whose branches wait for review.")
    ] = False,
    is_json: JSON = False,
) -> None:
    """List the newest runs of a pipeline, and what became of their targets."""
    pipeline = find_pipeline(scope, name, place).pipeline
    resolver = _make_resolver(pipeline)
    with resolver.hide_secrets_in_errors():
        found = import_module("run.pipeline_inspection").read_runs(
            pipeline, resolver, limit=limit, is_awaiting_review=is_awaiting_review
        )
    show(PipelineRuns(found), is_json=is_json)


def prune(
    scope: Scope,
    name: _NAME,
    place: DefinitionPlace,
    span: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="DUR", help="Only runs that began longer ago go: 12h, 7d, 2w."
        ),
    ],
    is_json: JSON = False,
) -> None:
    """Remove old runs from the ledger of a pipeline, and the positions of old batches.

    The newest run stays, as do runs that are under way or wait for review. Graphs do not change.
    """
    seconds = parse_duration(span)
    if seconds is None:
        fail(f"'{span}' is not a time span", hint="write 90, 30s, 15m, 12h, 7d or 2w")
    pipeline = find_pipeline(scope, name, place).pipeline
    resolver = _make_resolver(pipeline)
    with resolver.hide_secrets_in_errors():
        ledger = import_module("ledger.run_ledger").Ledger.open(
            resolver.resolve_ledger(), pipeline.name
        )
        show(
            PrunedRuns(ledger.prune(datetime.now(UTC) - timedelta(seconds=seconds))),
            is_json=is_json,
        )


def merge(
    scope: Scope,
    name: _NAME,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run.")],
    place: DefinitionPlace,
    is_json: JSON = False,
) -> None:
    """Merge the branches of a run that wait for review."""
    found = find_pipeline(scope, name, place)
    resolver = _make_resolver(found.pipeline)
    with resolver.hide_secrets_in_errors():
        done = import_module("run.run_review").merge_run(
            found.pipeline, resolver, run_id, actor=scope.actor, open_graph=found.open_graph
        )
    show(PipelineRun(done), is_json=is_json)


def schedule(
    scope: Scope,
    spark: SparkTarget,
    folder: _FOLDER = DEFAULT_FOLDER,
    is_followed: Annotated[
        bool, typer.Option("--follow", help="Go on with what becomes due, until interrupted.")
    ] = False,
    approved: Annotated[
        list[str] | None,
        typer.Option(
            "--approve", metavar="DIGEST", help="A definition that may overwrite data; repeatable."
        ),
    ] = None,
    is_json: JSON = False,
) -> None:
    """Run the pipelines of a folder whose schedule says that they are due."""
    due = import_module("run.scheduler")
    options = import_module("run.pipeline_run").RunOptions(
        actor=scope.actor, spark=build_spark_options(spark), approved=tuple(approved or ())
    )
    with handle_interrupts(lambda: _UNSURE):
        while True:
            # Definitions may be changed while a schedule is followed.
            pipelines, problems = _read_pipelines(None, folder)
            # One that cannot be read stops no other.
            print_problems(problems)
            found = list(due.run_due(pipelines, datetime.now(UTC), options))
            is_done = all(each.run and each.run.status == "succeeded" for each in found)
            failure = None if is_done and not problems else ErrorCode.INTERNAL
            if found or not is_followed:
                show(ScheduledRuns(found), is_json=is_json, failure=failure)
            if not is_followed:
                break
            wait_for_slot(due.find_next_due(pipelines, datetime.now(UTC)))
    if failure:
        raise typer.Exit(FAILED)


def backfill(
    scope: Scope,
    name: _NAME,
    slots: SlotRange,
    spark: SparkTarget,
    place: DefinitionPlace,
    is_json: JSON = False,
) -> None:
    """Run the slots of a pipeline between two times that are not done, oldest first.

    A slot that fails ends it. Started again, it goes on where it ended: no slot is written twice.
    """
    located = find_pipeline(scope, name, place)
    pipeline, module = located.pipeline, import_module("run.backfill")
    start, end = (each.replace(tzinfo=UTC) for each in (slots.start, slots.end))
    wanted = module.list_backfill(pipeline, start, end)
    options = located.build_options(
        actor=scope.actor, spark=build_spark_options(spark), approve=slots.approve
    )
    found = []
    with handle_interrupts(lambda: _UNSURE):
        for each in module.run_backfill(pipeline, wanted, options):
            found.append(each)
            if not is_json:
                typer.echo(f"{len(found)}/{len(wanted)} {each.interval.name}: {each.status}")
    answer = BackfilledSlots(pipeline.name, len(wanted), found)
    failure = None if answer.is_complete else ErrorCode.INTERNAL
    show(answer, is_json=is_json, failure=failure)
    if failure:
        raise typer.Exit(FAILED)


def wait_for_slot(slot: datetime | None) -> None:
    """Wait until a slot is near; definitions may change meanwhile."""
    if slot is None:
        fail("no pipeline of the folder has a schedule")
    left = (slot - datetime.now(UTC)).total_seconds()
    time.sleep(min(max(left, 0.0), _POLL_S))


def _list_paths(names: Sequence[str] | None, folder: Path) -> list[Path]:
    """The files of the pipelines that are named, or of all in a folder."""
    reading = import_module("config.definition_reader")
    if names:
        return [reading.find_definition(name, folder) for name in names]
    if not folder.is_dir():
        fail(f"{folder} is not a folder", hint="name the folder of the definitions with --folder")
    paths: list[Path] = reading.list_definitions(folder)
    return paths


def _find_pipelines(
    scope: Scope, names: Sequence[str] | None, place: DefinitionPlace
) -> tuple[list[Pipeline], list[str]]:
    if scope.is_addressed:
        return [each.pipeline for each in find_pipelines(scope, names, place)], []
    return _read_pipelines(names, place.definitions)


def _read_pipelines(names: Sequence[str] | None, folder: Path) -> tuple[list[Pipeline], list[str]]:
    """The pipelines that can be read, and what is wrong with the others."""
    from omnigraph.errors import PipelineInvalidError

    problems: list[str] = []
    pipelines: list[Pipeline] = []
    for path in _list_paths(names, folder):
        try:
            pipelines.append(import_module("config.definition_reader").read_pipeline(path))
        except PipelineInvalidError as failure:
            problems += map(str, failure.problems)
    return pipelines, problems


def _make_resolver(pipeline: Pipeline) -> Resolver:
    found: Resolver = import_module("config.secret_resolver").Resolver.from_environment(pipeline)
    return found
