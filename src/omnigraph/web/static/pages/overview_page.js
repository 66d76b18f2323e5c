/** A graph at a glance: its types, and what was committed last. */
import { html } from "../../vendor/preact.js";
import { CommitLine, titleOf } from "../components/commit_line.js";
import { DataTable } from "../components/data_table.js";
import { Empty, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { TypeName } from "../components/type_name.js";
import { formatCount, pluralize } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { Link } from "../navigation.js";
import { useLoad } from "../use_load.js";

const COMMITS_MAX = 8;

export default function OverviewPage() {
  const { graph, api, catalog, state } = useGraph();
  const count = (types) => types.reduce((sum, type) => sum + type.entity_count, 0);
  const commits = useLoad(
    (signal) =>
      state.branch === undefined
        ? api.readCommit(state.snapshot, signal).then((commit) => ({ commits: [commit] }))
        : api.listCommits(state.branch, COMMITS_MAX, signal),
    [api, state.branch, state.snapshot],
  );
  const sub = `${pluralize(count(catalog.nodes), "node")} of ${pluralize(catalog.nodes.length, "type")},
    ${pluralize(count(catalog.edges), "edge")} of ${pluralize(catalog.edges.length, "type")}`;
  return html`<div class="content">
    <${PageHead} title=${graph} sub=${sub} />
    ${catalog.types.length === 0 ? html`<${Empty}>The schema has no types yet.<//>` : null}
    <${TypeTiles} types=${catalog.nodes} />
    <div class="columns">
      <${EdgeTypes} types=${catalog.edges} />
      <section class="card">
        <div class="head"><h2>Newest commits</h2></div>
        <${Loaded} load=${commits}
          >${(data) =>
            html`<ul class="list">
              ${data.commits.map(
                (commit) =>
                  html`<li key=${commit.graph_commit_id}>
                    <div>${titleOf(commit)}</div>
                    <${CommitLine} commit=${commit} />
                  </li>`,
              )}
            </ul>`}<//
        >
      </section>
    </div>
  </div>`;
}

function EdgeTypes({ types }) {
  const { address } = useGraph();
  if (types.length === 0) return null;
  const columns = [
    {
      name: "name",
      title: "Edge",
      cell: (type) => html`<${Link} to=${address("types", ["edge", type.name])}>${type.name}<//>`,
    },
    {
      name: "ends",
      title: "Joins",
      cell: (type) => html`<span class="muted">${type.source} → ${type.target}</span>`,
    },
    {
      name: "entity_count",
      title: "Count",
      isNumber: true,
      cell: (type) => formatCount(type.entity_count),
    },
  ];
  return html`<section class="card">
    <${DataTable}
      label="Edge types"
      columns=${columns}
      rows=${types}
      keyOf=${(type) => type.name}
    />
  </section>`;
}

function TypeTiles({ types }) {
  const { address } = useGraph();
  return html`<div class="tiles">
    ${types.map(
      (type) =>
        html`<${Link} class="tile" key=${type.name} to=${address("types", [type.kind, type.name])}>
          <span class="name"><${TypeName} kind=${type.kind} name=${type.name} /></span>
          <span class="big">${formatCount(type.entity_count)}</span>
          <span class="muted small"
            >${type.description ?? pluralize(type.properties.length, "property", "properties")}</span
          >
        <//>`,
    )}
  </div>`;
}
