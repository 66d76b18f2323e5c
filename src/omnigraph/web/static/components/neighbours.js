/** What a node is joined to, by edge type; each list grows on demand. */
import { html, useState } from "../../vendor/preact.js";
import { formatCount } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { buildDegree, buildNeighbours } from "../graph_queries.js";
import { useLoad } from "../use_load.js";
import { EntityLink, labelOf } from "./entity_link.js";
import { Empty, Loaded } from "./notices.js";
import { TypeDot } from "./type_name.js";

const FIRST = 10;
const MORE = 100;

export function Neighbours({ type, id }) {
  const { api, state, stateKey, catalog } = useGraph();
  const hops = type === null ? [] : catalog.listEdgesOf(type.name);
  const degrees = useLoad(
    (signal) =>
      Promise.all(
        hops.map((hop) =>
          api
            .query(state, buildDegree(type.name, hop), { id }, signal)
            .then((answer) => answer.rows[0]?.edges ?? 0),
        ),
      ),
    [api, stateKey, type?.name, id],
  );
  return html`<section class="card">
    <div class="head"><h2>Neighbours</h2></div>
    <${Loaded} load=${degrees}
      >${(counts) =>
        counts.every((count) => count === 0)
          ? html`<div class="body"><${Empty}>Nothing is joined to it.<//></div>`
          : hops.map((hop, at) =>
              counts[at] === 0
                ? null
                : html`<${Hop}
                    type=${type}
                    id=${id}
                    hop=${hop}
                    count=${counts[at]}
                    key=${`${hop.edge.name} ${hop.direction}`}
                  />`,
            )}<//
    >
  </section>`;
}

function Hop({ type, id, hop, count }) {
  const { api, state, stateKey, catalog } = useGraph();
  const [limit, setLimit] = useState(FIRST);
  const found = useLoad(
    (signal) => api.query(state, buildNeighbours(type.name, hop, limit), { id }, signal),
    [api, stateKey, id, limit],
  );
  const other = catalog.find("node", hop.other);
  const arrow = hop.direction === "out" ? "→" : "←";
  return html`<div>
    <h3 class="row" style=${{ padding: "10px 16px 2px" }}>
      <span class="muted">${arrow}</span>${hop.edge.name}
      <span class="badge">${formatCount(count)}</span>
    </h3>
    <${Loaded} load=${found}
      >${(data) =>
        html`<ul class="list">
          ${data.rows.map(
            (row) =>
              html`<li key=${row.edge} class="row">
                <${TypeDot} kind="node" name=${hop.other} />
                <${EntityLink}
                  type=${hop.other}
                  id=${row.x["@id"]}
                  label=${labelOf(other, row.x)}
                />
              </li>`,
          )}
          ${
            data.rows.length < count
              ? html`<li>
                  <button class="button plain" onClick=${() => setLimit(limit + MORE)}>
                    Show more of ${formatCount(count)}
                  </button>
                </li>`
              : null
          }
        </ul>`}<//
    >
  </div>`;
}
