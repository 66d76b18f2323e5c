/** The commits of a branch, or one of them with what it changed. */
import { html, useState } from "../../vendor/preact.js";
import { titleOf } from "../components/commit_line.js";
import { DataTable } from "../components/data_table.js";
import { DiffView } from "../components/diff_view.js";
import { Empty, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { formatAge, formatTime, shortenId } from "../formats.js";
import { MAIN, useGraph } from "../graph_context.js";
import { buildAddress, Link } from "../navigation.js";
import { useLoad } from "../use_load.js";

const AT_ONCE = 50;

export default function CommitsPage({ parts: [id] }) {
  return id === undefined ? html`<${CommitList} />` : html`<${CommitPage} key=${id} id=${id} />`;
}

function CommitList() {
  const { api, state, address } = useGraph();
  const [limit, setLimit] = useState(AT_ONCE);
  const branch = state.branch ?? MAIN;
  const commits = useLoad((signal) => api.listCommits(branch, limit, signal), [api, branch, limit]);
  const columns = [
    {
      name: "message",
      title: "What",
      cell: (commit) =>
        html`<${Link} to=${address("commits", [commit.graph_commit_id])}>${titleOf(commit)}<//>`,
    },
    { name: "actor_id", title: "Who", isFit: true },
    {
      name: "created_at",
      title: "When",
      isFit: true,
      cell: (commit) =>
        html`<time title=${formatTime(commit.created_at)}>${formatAge(commit.created_at)}</time>`,
    },
    {
      name: "graph_manifest_version",
      title: "Version",
      isNumber: true,
      isFit: true,
    },
    {
      name: "graph_commit_id",
      title: "Commit",
      isFit: true,
      cell: (commit) => html`<code>${commit.graph_commit_id}</code>`,
    },
  ];
  return html`<div class="content">
    <${PageHead} title="Commits" sub=${`The newest commits of ${branch}`} />
    <${Loaded} load=${commits}
      >${(data) =>
        html`<section class="card">
            <${DataTable}
              label="Commits"
              columns=${columns}
              rows=${data.commits}
              keyOf=${(each) => each.graph_commit_id}
            />
          </section>
          ${
            data.commits.length === limit
              ? html`<div>
                  <button class="button" onClick=${() => setLimit(limit + 4 * AT_ONCE)}>
                    Older commits
                  </button>
                </div>`
              : null
          }`}<//
    >
  </div>`;
}

function CommitPage({ id }) {
  const { api, graph, address } = useGraph();
  const commit = useLoad((signal) => api.readCommit(id, signal), [api, id]);
  return html`<div class="content">
    <${Loaded} load=${commit}
      >${(data) => {
        const parent = data.parent_commit_id;
        const isEmpty = parent === null || data.maintenance;
        return html`<${PageHead} title=${titleOf(data)} sub=${html`<code>${id}</code>`}>
            <${Link} class="button" to=${buildAddress(["graphs", graph], { at: id })}
              >Show the graph as of then<//
            >
          <//>
          <${CommitFacts} commit=${data} address=${address} />
          ${isEmpty ? html`<${Empty}>It changed no entity.<//>` : html`<${DiffView} body=${{ old: parent, new: id }} />`}`;
      }}<//
    >
  </div>`;
}

function CommitFacts({ commit, address }) {
  const link = (id) =>
    html`<${Link} to=${address("commits", [id])}><code>${shortenId(id)}</code><//>`;
  const preferred = Object.entries(commit.preferred ?? {})
    .map(([kind, side]) => `${side} in ${kind}`)
    .join(", ");
  const facts = [
    ["Who", commit.actor_id ?? "unknown"],
    ["When", formatTime(commit.created_at)],
    ["Branch", commit.graph_branch ?? MAIN],
    ["Version", commit.graph_manifest_version],
    ["Parent", commit.parent_commit_id && link(commit.parent_commit_id)],
    ["Merged", commit.merged_parent_commit_id && link(commit.merged_parent_commit_id)],
    ["Reverts", commit.reverts && link(commit.reverts)],
    ["Preferred", preferred],
    [
      "Decisions",
      commit.decisions
        ?.map((each) => `${each.type_name} ${each.entity_id} ${each.property ?? ""}: ${each.take}`)
        .join("; "),
    ],
  ];
  return html`<section class="card">
    <dl class="facts">
      ${facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(
          ([name, value]) =>
            html`<dt key=${name}>${name}</dt>
              <dd>${value}</dd>`,
        )}
    </dl>
  </section>`;
}
