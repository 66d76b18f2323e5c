/** A panel: the rows of a stored query as a number, a chart or a table. */
import { html, useMemo } from "../../vendor/preact.js";
import { useGraph } from "../graph_context.js";
import { buildAddress, Link } from "../navigation.js";
import { useLoad } from "../use_load.js";
import { Chart } from "./chart.js";
import { DataTable } from "./data_table.js";
import { Empty, Loaded } from "./notices.js";
import { Value } from "./value.js";

const ROWS_SHOWN_MAX = 200;

export function DashboardPanel({ panel }) {
  const { api, graph, state, stateKey } = useGraph();
  const answer = useLoad(
    (signal) => api.readStored(panel.query, { ...state, params: panel.params }, signal),
    [api, stateKey, panel],
  );
  const to = buildAddress(["graphs", graph, "stored", panel.query]);
  return html`<section class="card" aria-label=${panel.title}>
    <div class="head">
      <h2>${panel.title}</h2>
      <${Link} class="small" to=${to}>${panel.query}<//>
    </div>
    <${Loaded} load=${answer}
      >${(data) =>
        data.rows.length === 0
          ? html`<div class="body"><${Empty}>No rows.<//></div>`
          : html`<${Shown} panel=${panel} rows=${data.rows} columns=${data.columns} />`}<//
    >
  </section>`;
}

function Shown({ panel, rows, columns }) {
  switch (panel.chart) {
    case "number":
      return html`<p class="body big-number"><${Value} value=${rows[0][panel.y[0]]} /></p>`;
    case "bar":
    case "line":
      return html`<div class="body"><${Chart} panel=${panel} rows=${rows} /></div>`;
    default:
      return html`<${RowTable} panel=${panel} rows=${rows} columns=${columns} />`;
  }
}

function RowTable({ panel, rows, columns }) {
  const names = panel.columns.length > 0 ? panel.columns : columns;
  const shown = useMemo(
    () =>
      names.map((name) => ({
        name,
        isNumber: ["number", "bigint"].includes(typeof rows[0][name]),
      })),
    [names, rows],
  );
  return html`<${DataTable}
      label=${`Rows of ${panel.title}`}
      columns=${shown}
      rows=${rows.slice(0, ROWS_SHOWN_MAX)}
    />
    ${
      rows.length > ROWS_SHOWN_MAX
        ? html`<p class="body muted">The first ${ROWS_SHOWN_MAX} rows are shown.</p>`
        : null
    }`;
}
