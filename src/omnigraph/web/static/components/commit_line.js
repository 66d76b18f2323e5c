/** A commit in one line: its message, who, when. */
import { html } from "../../vendor/preact.js";
import { formatAge, formatTime, shortenId } from "../formats.js";

export function CommitLine({ commit }) {
  return html`<span class="row small muted">
    <code title=${commit.graph_commit_id}>${shortenId(commit.graph_commit_id)}</code>
    ${commit.actor_id ? html`<span>${commit.actor_id}</span>` : null}
    <time title=${formatTime(commit.created_at)}>${formatAge(commit.created_at)}</time>
    ${commit.graph_branch ? html`<span class="badge">${commit.graph_branch}</span>` : null}
  </span>`;
}

export function titleOf(commit) {
  if (commit.message) return commit.message;
  if (commit.maintenance) return "Upkeep of indexes and files";
  if (commit.merged_parent_commit_id) return "Merge";
  if (commit.reverts) return "Revert";
  return commit.parent_commit_id ? "Change without a message" : "The graph was created";
}
