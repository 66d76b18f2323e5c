/** The graphs that the caller may read. */
import { html } from "../../vendor/preact.js";
import { buildAddress, Link } from "../navigation.js";
import { Bar } from "./bar.js";
import { Empty } from "./notices.js";

export function GraphList({ session, onSignOut }) {
  const none =
    session.actor_id === null
      ? "This server has no graph that can be read now."
      : html`No graph of this server can be read by <strong>${session.actor_id}</strong>.`;
  return html`<div class="shell">
    <${Bar} session=${session} onSignOut=${onSignOut} />
    <main class="page" style=${{ gridColumn: "1 / -1" }}>
      <div class="content">
        <h1>Graphs</h1>
        ${session.graphs.length === 0 ? html`<${Empty}>${none}<//>` : null}
        <div class="tiles">
          ${session.graphs.map(
            (graph) =>
              html`<${Link} class="tile" key=${graph} to=${buildAddress(["graphs", graph])}
                ><span class="name">${graph}</span><//
              >`,
          )}
        </div>
      </div>
    </main>
  </div>`;
}
