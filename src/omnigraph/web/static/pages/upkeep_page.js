/** How a graph is kept: its declared indexes, and its tables. */
import { html } from "../../vendor/preact.js";
import { DataTable } from "../components/data_table.js";
import { Empty, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { TypeName } from "../components/type_name.js";
import { formatCount } from "../formats.js";
import { MAIN, useGraph } from "../graph_context.js";
import { useLoad } from "../use_load.js";

const TONES = { fresh: "good", stale: "warn", absent: "", pending: "" };
const MEANINGS = {
  fresh: "covers all rows",
  stale: "rows were written since",
  absent: "not built",
  pending: "cannot be built yet",
};

export default function UpkeepPage() {
  const { api, state, stateKey, catalog } = useGraph();
  const branch = state.branch ?? MAIN;
  const indexes = useLoad((signal) => api.listIndexes(branch, signal), [api, branch]);
  const snapshot = useLoad((signal) => api.readSnapshot(state, signal), [api, stateKey]);
  return html`<div class="content">
    <${PageHead}
      title="Upkeep"
      sub="Indexes and files affect how fast an answer comes, never the answer."
    />
    <section class="card">
      <div class="head"><h2>Indexes of ${branch}</h2></div>
      <${Loaded} load=${indexes}
        >${(data) =>
          data.indexes.length === 0
            ? html`<div class="body">
                <${Empty}>The schema declares none.<//>
              </div>`
            : html`<${IndexTable} indexes=${data.indexes} />`}<//
      >
    </section>
    <section class="card">
      <div class="head"><h2>Tables</h2></div>
      <${Loaded} load=${snapshot}
        >${(data) =>
          html`<${DataTable}
            label="Tables"
            rows=${data.datasets}
            keyOf=${(row) => row.dataset_path}
            columns=${[
              {
                name: "type_name",
                title: "Type",
                cell: (row) => html`<${TypeName} kind=${row.entity_kind} name=${row.type_name} />`,
              },
              {
                name: "entity_count",
                title: "Entities",
                isNumber: true,
                cell: (row) => formatCount(row.entity_count),
              },
              {
                name: "dataset_path",
                title: "Table",
                cell: (row) => html`<code>${row.dataset_path}</code>`,
              },
            ]}
          />`}<//
      >
    </section>
    <p class="muted">
      The schema of this state has ${formatCount(catalog.types.length)} types. Compaction and
      clean-up are commands: <code>omnigraph optimize</code> and <code>omnigraph cleanup</code>.
    </p>
  </div>`;
}

function IndexTable({ indexes }) {
  const columns = [
    {
      name: "type_key",
      title: "Type",
      isFit: true,
      cell: (row) => {
        const [kind, name] = row.type_key.split(":");
        return html`<${TypeName} kind=${kind} name=${name} />`;
      },
    },
    {
      name: "property",
      title: "Property",
      isFit: true,
      cell: (row) => html`<code>${row.property}</code>`,
    },
    {
      name: "state",
      title: "State",
      cell: (row) =>
        html`<span class=${`badge ${TONES[row.state] ?? ""}`}>${row.state}</span>
          <span class="muted small">${row.reason ?? MEANINGS[row.state] ?? ""}</span>`,
    },
    {
      name: "covered_rows",
      title: "Rows covered",
      isNumber: true,
      cell: (row) => `${formatCount(row.covered_rows)} of ${formatCount(row.total_rows)}`,
    },
  ];
  return html`<${DataTable}
    label="Indexes"
    columns=${columns}
    rows=${indexes}
    keyOf=${(row) => `${row.type_key} ${row.property}`}
  />`;
}
