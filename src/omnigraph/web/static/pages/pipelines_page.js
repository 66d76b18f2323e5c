/** Runs of pipelines: what each of them read and wrote, and the records that it left out. */
import { html } from "../../vendor/preact.js";
import { DataTable } from "../components/data_table.js";
import { Empty, Failure, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { formatAge, formatCount } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { Link } from "../navigation.js";
import { useLoad } from "../use_load.js";

const TONES = {
  succeeded: "good",
  failed: "bad",
  partial: "warn",
  interrupted: "warn",
  running: "accent",
};

function Status({ status }) {
  return html`<span class=${`badge ${TONES[status] ?? ""}`}>${status}</span>`;
}

function formatMoment(text) {
  return text === null ? "" : formatAge(Date.parse(text) * 1000);
}

function sum(run, member) {
  return run.targets.reduce((count, target) => count + (target[member] ?? 0), 0);
}

export default function PipelinesPage({ parts: [pipeline, id] }) {
  return id === undefined
    ? html`<${RunList} />`
    : html`<${RunPage} key=${`${pipeline} ${id}`} pipeline=${pipeline} id=${id} />`;
}

function RunList() {
  const { api, address } = useGraph();
  const found = useLoad((signal) => api.listRuns(signal), [api]);
  const columns = [
    {
      name: "run",
      title: "Run",
      isFit: true,
      cell: (run) =>
        html`<${Link} to=${address("pipelines", [run.pipeline, run.run_id])}>${run.pipeline}<//>`,
    },
    {
      name: "status",
      isFit: true,
      title: "Status",
      cell: (run) => html`<${Status} status=${run.status} />`,
    },
    { name: "slot", title: "Slot" },
    {
      name: "started_at",
      title: "Started",
      isFit: true,
      cell: (run) => formatMoment(run.started_at),
    },
    {
      name: "rows_read",
      title: "Read",
      isNumber: true,
      cell: (run) => formatCount(run.rows_read ?? 0),
    },
    {
      name: "written",
      title: "Written",
      isNumber: true,
      cell: (run) => formatCount(sum(run, "rows_written")),
    },
    {
      name: "rejected",
      title: "Rejected",
      isNumber: true,
      cell: (run) => formatCount(sum(run, "rows_rejected")),
    },
  ];
  return html`<div class="content">
    <${PageHead} title="Pipelines" sub="Runs whose ledger is in this graph." />
    <${Loaded} load=${found}>
      ${({ runs }) =>
        runs.length === 0
          ? html`<${Empty}>No pipeline has run into this graph.<//>`
          : html`<section class="card">
              <${DataTable}
                label="Runs"
                columns=${columns}
                rows=${runs}
                keyOf=${(run) => run.run_id}
              />
            </section>`}
    <//>
  </div>`;
}

function RunPage({ pipeline, id }) {
  const { api } = useGraph();
  const run = useLoad((signal) => api.readRun(pipeline, id, signal), [api, pipeline, id]);
  return html`<div class="content">
    <${Loaded} load=${run}>
      ${(data) =>
        html`<${PageHead} title=${pipeline} sub=${html`<code>${id}</code>`}>
            <${Status} status=${data.status} />
          <//>
          <${RunFacts} run=${data} />
          ${data.targets.map(
            (target) =>
              html`<${Target}
                key=${target.target}
                pipeline=${pipeline}
                run=${id}
                target=${target}
              />`,
          )}`}
    <//>
  </div>`;
}

function RunFacts({ run }) {
  const facts = [
    ["Slot", run.slot],
    ["Trigger", run.trigger],
    ["Started", run.started_at],
    ["Ended", run.ended_at],
    ["Who", run.actor_id],
    ["Read", run.rows_read === null ? null : formatCount(run.rows_read)],
    ["Conditions", run.conditions.join(", ")],
    ["Error", run.error],
    ["Warnings", run.warnings.join("; ")],
  ];
  return html`<section class="card">
    <dl class="facts">
      ${facts
        .filter(([, value]) => value)
        .map(
          ([name, value]) =>
            html`<dt key=${name}>${name}</dt>
              <dd>${value}</dd>`,
        )}
    </dl>
  </section>`;
}

function Target({ pipeline, run, target }) {
  const { address } = useGraph();
  const entities = Object.entries(target.entities).map(
    ([name, count]) => `${name} ${formatCount(count)}`,
  );
  return html`<section class="card">
    <div class="head">
      <h2>${target.target}</h2>
      <${Status} status=${target.status} />
    </div>
    <dl class="facts">
      <dt>Written</dt>
      <dd>${entities.join(", ") || "nothing"}</dd>
      <dt>Rejected</dt>
      <dd>${target.rows_rejected === null ? "not known" : formatCount(target.rows_rejected)}</dd>
      ${
        target.commit_id
          ? html`<dt>Commit</dt>
              <dd>
                <${Link} to=${address("commits", [target.commit_id])}
                  ><code>${target.commit_id}</code><//
                >
              </dd>`
          : null
      }
      ${
        target.error
          ? html`<dt>Error</dt>
              <dd>${target.error}</dd>`
          : null
      }
    </dl>
    ${target.rejects ? html`<${Rejected} pipeline=${pipeline} run=${run} target=${target} />` : null}
  </section>`;
}

function Rejected({ pipeline, run, target }) {
  const { api } = useGraph();
  const found = useLoad(
    (signal) => api.readRejected(pipeline, run, target.target, signal),
    [api, pipeline, run, target.target],
  );
  const columns = [
    { name: "reason", title: "Why" },
    { name: "type", isFit: true },
    { name: "property", isFit: true },
    { name: "place", title: "Where" },
    { name: "raw", title: "Record" },
  ];
  if (found.error) return html`<div class="body"><${Failure} error=${found.error} /></div>`;
  return html`<${Loaded} load=${found}>
    ${({ records, rejects }) =>
      records.length === 0
        ? html`<p class="body muted">Their file is not on this machine: <code>${rejects}</code></p>`
        : html`<${DataTable} label="Rejected records" columns=${columns} rows=${records} />`}
  <//>`;
}
