/** The answer to a query: rows as a table, as JSON, as a graph, and how it was found. */
import { html, useState } from "../../vendor/preact.js";
import { pluralize } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { useLoad } from "../use_load.js";
import { CommitLine } from "./commit_line.js";
import { DataTable } from "./data_table.js";
import { EntityLink, labelOf } from "./entity_link.js";
import { JsonView } from "./json_view.js";
import { Empty, Loaded, Notice } from "./notices.js";
import { ResultGraphView } from "./result_graph_view.js";
import { Tabs } from "./tabs.js";
import { Value } from "./value.js";

const ROWS_SHOWN_MAX = 1_000;

export function QueryResult({ result }) {
  if (result.change) return html`<${Change} change=${result.change} />`;
  return html`<${Rows} result=${result} />`;
}

function Change({ change }) {
  if (change.commit === null)
    return html`<${Notice} kind="warn">Nothing matched, and nothing was written.<//>`;
  return html`<${Notice} kind="good">
    <strong
      >${pluralize(change.affected_nodes, "node")} and
      ${" "}${pluralize(change.affected_edges, "edge")} written to ${change.branch}</strong
    >
    <${CommitLine} commit=${change.commit} />
  <//>`;
}

function Rows({ result: { answer, nodes, body } }) {
  const [tab, setTab] = useState("table");
  const tabs = [
    { name: "table", title: "Table" },
    { name: "json", title: "JSON" },
    { name: "graph", title: "Graph" },
    ...(body === null ? [] : [{ name: "plan", title: "Plan" }]),
  ];
  return html`<section class="card">
    <div class="head">
      <${Tabs} label="Answer" tabs=${tabs} chosen=${tab} onChoose=${setTab} />
      <span class="muted small">${pluralize(answer.row_count, "row")}</span>
    </div>
    ${tab === "table" ? html`<${RowTable} answer=${answer} nodes=${nodes} />` : null}
    ${tab === "json" ? html`<${JsonView} value=${answer.rows.slice(0, ROWS_SHOWN_MAX)} />` : null}
    ${tab === "graph" ? html`<${ResultGraphView} rows=${answer.rows} nodes=${nodes} />` : null}
    ${tab === "plan" ? html`<${Plan} body=${body} />` : null}
  </section>`;
}

function RowTable({ answer, nodes }) {
  const { catalog } = useGraph();
  if (answer.rows.length === 0) return html`<div class="body"><${Empty}>No rows.<//></div>`;
  const isNumber = (name) => ["number", "bigint"].includes(typeof answer.rows[0][name]);
  const columns = (answer.columns ?? []).map((name) => ({
    name,
    isNumber: isNumber(name),
    ...(nodes[name]
      ? {
          cell: (row) =>
            html`<${NodeCell} type=${catalog.find("node", nodes[name])} node=${row[name]} />`,
        }
      : {}),
  }));
  const rows = answer.rows.slice(0, ROWS_SHOWN_MAX);
  return html`<${DataTable} label="Rows" columns=${columns} rows=${rows} /> ${
      answer.rows.length > rows.length
        ? html`<div class="body muted">
            The first ${ROWS_SHOWN_MAX} rows are shown; a limit and an offset give others.
          </div>`
        : null
    }`;
}

function NodeCell({ type, node }) {
  if (node === null || type === null) return html`<${Value} value=${node} />`;
  return html`<${EntityLink} type=${type.name} id=${node["@id"]} label=${labelOf(type, node)} />`;
}

function Plan({ body }) {
  const { api, state, stateKey } = useGraph();
  const plan = useLoad(
    (signal) => api.explain({ ...body, ...state, analyze: true }, signal),
    [api, stateKey, body],
  );
  const columns = [
    { name: "operator", isFit: true },
    { name: "detail" },
    { name: "access", isFit: true },
    { name: "index", isFit: true },
    { name: "estimated_rows", title: "estimated", isNumber: true },
    { name: "actual_rows", title: "rows", isNumber: true },
    {
      name: "time_ms",
      title: "ms",
      isNumber: true,
      cell: (row) => row.time_ms?.toFixed(2),
    },
  ];
  return html`<${Loaded} load=${plan}
    >${(data) => html`<${DataTable} label="Plan" columns=${columns} rows=${data.operators} />`}<//
  >`;
}
