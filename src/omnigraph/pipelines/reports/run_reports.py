"""What is reported of a run; a report that fails is a warning of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from omnigraph.errors import OmnigraphError, SecretMissingError
from omnigraph.pipelines.config.report_settings import Hook, MetricsSettings
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.run_ledger import Ledger, Run, RunLog
from omnigraph.pipelines.reports.lineage_events import (
    START,
    LineageSubject,
    build_event,
    event_type_of,
)
from omnigraph.pipelines.reports.lineage_transport import DEFAULT_NAMESPACE, find_transport
from omnigraph.pipelines.reports.report_sender import ReportFailedError
from omnigraph.pipelines.reports.run_hooks import build_document, event_of, run_hook
from omnigraph.pipelines.reports.run_metrics import push_metrics, write_metrics_file
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class RunReporter:
    """The reports of the runs of a pipeline."""

    resolver: Resolver
    ledger: Ledger
    # The schemas of targets, as far as they were read.
    catalogs: Mapping[str, Catalog] = field(default_factory=dict)

    def report_start(self, log: RunLog) -> None:
        """Report a run that has begun."""
        self._attempt("lineage", log, partial(self._send_event, log, is_start=True))

    def report_end(self, log: RunLog) -> None:
        """Report a run whose end is in the ledger."""
        self._attempt("lineage", log, partial(self._send_event, log, is_start=False))
        run = None
        with suppress(OmnigraphError):
            run = self.ledger.find_run(log.run_id)
        if run is None:
            return
        for hook in self.resolver.pipeline.reports.hooks:
            if hook.event == event_of(run):
                self._attempt(hook.display_name, log, partial(self._run_hook, hook, run))

        if self.resolver.pipeline.reports.metrics is not None:
            self._publish_metrics(self.resolver.pipeline.reports.metrics, log)

    def _send_event(self, log: RunLog, *, is_start: bool) -> None:
        pipeline, environment = self.resolver.pipeline, self.resolver.environment
        settings = self.resolver.resolve_settings(pipeline.reports.lineage)
        transport = find_transport(settings, environment, pipeline.folder)
        run = None if transport is None else self.ledger.find_run(log.run_id)
        if transport is None or run is None:
            return
        namespace = environment.get("OPENLINEAGE_NAMESPACE") or DEFAULT_NAMESPACE
        if settings is not None and settings.namespace is not None:
            namespace = settings.namespace
        event = build_event(
            START if is_start else event_type_of(run),
            run,
            self._make_subject(),
            namespace=namespace,
            parent=environment.get("OPENLINEAGE_PARENT_ID"),
        )
        transport.send(event)

    def _make_subject(self) -> LineageSubject:
        pipeline = self.resolver.pipeline
        sources, graphs = {}, {}
        for name in pipeline.sources:
            with suppress(SecretMissingError):
                sources[name] = self.resolver.resolve_source(name)
        for name in pipeline.graphs:
            with suppress(SecretMissingError):
                graphs[name] = self.resolver.resolve_graph(name)
        return LineageSubject(pipeline, sources, graphs, self.catalogs)

    def _publish_metrics(self, settings: MetricsSettings, log: RunLog) -> None:
        """Publish metrics last: how many reports did not arrive is among them."""
        if settings.folder is not None:
            self._attempt("metrics", log, partial(self._write_metrics, settings, log))
        if settings.gateway is not None:
            self._attempt("metrics", log, partial(self._push_metrics, settings, log))

    def _write_metrics(self, settings: MetricsSettings, log: RunLog) -> None:
        folder = self.resolver.resolve_settings(settings).folder
        run = self.ledger.find_run(log.run_id)
        if run is not None and folder is not None:
            write_metrics_file(self.resolver.pipeline.folder / folder, run)

    def _push_metrics(self, settings: MetricsSettings, log: RunLog) -> None:
        resolved = self.resolver.resolve_settings(settings)
        run = self.ledger.find_run(log.run_id)
        if run is not None and resolved.gateway is not None:
            push_metrics(resolved.gateway, resolved.headers, run)

    def _run_hook(self, hook: Hook, run: Run) -> None:
        resolved = self.resolver.resolve_settings(hook)
        document = self.resolver.hide_secrets(build_document(run))
        run_hook(resolved, document, self.resolver.pipeline.folder)

    def _attempt(self, name: str, log: RunLog, send: Callable[[], None]) -> None:
        """Send a report; whatever goes wrong, the run is as it was."""
        try:
            send()
        except Exception as failure:  # noqa: BLE001 — a report may fail in any way
            is_known = isinstance(failure, ReportFailedError | OmnigraphError)
            reason = str(failure) if is_known else f"{type(failure).__name__}: {failure}"
            message = self.resolver.hide_secrets(f"{name} failed: {reason}")
            with suppress(OmnigraphError):
                log.add_warning(message)
