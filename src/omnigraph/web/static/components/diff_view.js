/** What changed between two states: counts, a table of entities, and a coloured graph. */
import { html, useState } from "../../vendor/preact.js";
import { formatCount } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { CHANGES_MAX, useDiff } from "../use_diff.js";
import { ChangeTable } from "./change_table.js";
import { DiffGraph } from "./diff_graph.js";
import { Empty, Loaded, Notice } from "./notices.js";
import { Tabs } from "./tabs.js";
import { TypeName } from "./type_name.js";

const TABS = [
  { name: "table", title: "Table" },
  { name: "graph", title: "Graph" },
];

export function DiffView({ body }) {
  const { api } = useGraph();
  const diff = useDiff((signal) => api.diff(body, signal), [api, JSON.stringify(body)]);
  return html`<${DiffOf} diff=${diff} same="Both states are the same." />`;
}

/** A difference that `useDiff` reads; `notes` is what the table shows beside each change. */
export function DiffOf({ diff, same, notes = null }) {
  const [tab, setTab] = useState("table");
  const [chosen, setChosen] = useState(null);
  return html`<${Loaded} load=${diff} text="Comparing"
    >${({ header, changes, isCut }) => {
      const isSame = header.summary.length === 0 && header.schema_changes.length === 0;
      if (isSame) return html`<${Empty}>${same}<//>`;
      const shown = chosen === null ? changes : changes.filter((each) => isOf(each, chosen));
      return html`<div class="stack">
        <${Summary} summary=${header.summary} chosen=${chosen} onChoose=${setChosen} />
        <${SchemaChanges} lines=${header.schema_changes} />
        ${
          isCut
            ? html`<${Notice} kind="warn">
                The first ${formatCount(CHANGES_MAX)} changes are shown. Choose types to see others,
                or use
                <code> omnigraph diff</code>.<//
              >`
            : null
        }
        <section class="card">
          <div class="head">
            <${Tabs} label="Changes" tabs=${TABS} chosen=${tab} onChoose=${setTab} />
          </div>
          ${
            tab === "table"
              ? html`<${ChangeTable} changes=${shown} notes=${notes} />`
              : html`<div class="body"><${DiffGraph} changes=${shown} /></div>`
          }
        </section>
      </div>`;
    }}<//
  >`;
}

function isOf(change, { kind, type }) {
  return change.kind === kind && change.type.id === type.id;
}

/** Nodes before edges, each by name; the server has the order of opaque ids. */
function compareTypes(one, other) {
  return other.kind.localeCompare(one.kind) || one.type.name.localeCompare(other.type.name);
}

function Summary({ summary, chosen, onChoose }) {
  return html`<div class="tiles" role="group" aria-label="Types that changed">
    ${[...summary].sort(compareTypes).map((each) => {
      const isChosen = chosen?.type.id === each.type.id && chosen.kind === each.kind;
      return html`<button
        type="button"
        key=${`${each.kind} ${each.type.id}`}
        class="tile"
        aria-pressed=${isChosen}
        style=${{ textAlign: "left", cursor: "pointer", borderColor: isChosen ? "var(--accent)" : null }}
        onClick=${() => onChoose(isChosen ? null : each)}
      >
        <span class="name"><${TypeName} kind=${each.kind} name=${each.type.name} /></span>
        <span class="row">
          <span class="added">+${formatCount(each.inserted)}</span>
          <span class="changed">~${formatCount(each.updated)}</span>
          <span class="removed">−${formatCount(each.deleted)}</span>
        </span>
      </button>`;
    })}
  </div>`;
}

function SchemaChanges({ lines }) {
  if (lines.length === 0) return null;
  const tone = (line) => ({ "+": "added", "-": "removed" })[line.charAt(0)] ?? "muted";
  return html`<section class="card">
    <div class="head"><h2>Schema</h2></div>
    <pre class="json mono">
${lines.map((line) => html`<div class=${tone(line)}>${line}</div>`)}</pre>
  </section>`;
}
