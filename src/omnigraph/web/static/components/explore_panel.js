/** The selected node of an exploration: its values, and where one can go from it. */
import { html, useState } from "../../vendor/preact.js";
import { formatCount } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { buildDegree } from "../graph_queries.js";
import { useLoad } from "../use_load.js";
import { EntityLink } from "./entity_link.js";
import { Busy, Empty, Loaded } from "./notices.js";
import { TypeDot, TypeName } from "./type_name.js";
import { Value } from "./value.js";

const LISTED_MAX = 100;

export function ExplorePanel({
  node,
  nodes,
  onSelect,
  isBusy,
  anchor,
  hasPath,
  onExpand,
  onRemove,
  onAnchor,
  onJoin,
  onClearPath,
}) {
  if (node === null) return html`<${NodeList} nodes=${nodes} onSelect=${onSelect} />`;
  const isEnd = anchor !== null && anchor.key !== node.key;
  return html`<aside class="panel card" aria-label="Selected node">
    <div class="head">
      <h2>
        <${EntityLink} type=${node.type} id=${node.id} label=${node.label} />
      </h2>
      <${TypeName} kind="node" name=${node.type} />
    </div>
    <${Hops} key=${node.key} node=${node} isBusy=${isBusy} onExpand=${onExpand} />
    <div class="body row">
      ${
        isEnd
          ? html`<button class="button primary" disabled=${isBusy} onClick=${() => onJoin(node)}>
              Path from ${anchor.label}
            </button>`
          : html`<button class="button" onClick=${() => onAnchor(node)}>
              ${anchor ? "Now select the other end" : "Start of a path"}
            </button>`
      }
      ${hasPath ? html`<button class="button plain" onClick=${onClearPath}>Clear the path</button>` : null}
      <button class="button plain" onClick=${() => onRemove(node)}>Remove</button>
      <button class="button plain" onClick=${() => onSelect(null)}>All nodes</button>
    </div>
    <dl class="facts">
      ${Object.entries(node.object).map(
        ([name, value]) =>
          html`<dt key=${name}>${name}</dt>
            <dd><${Value} value=${value} /></dd>`,
      )}
    </dl>
  </aside>`;
}

/** What is drawn as a list, for keyboards and screen readers, and to find something by its name. */
function NodeList({ nodes, onSelect }) {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const found = nodes.filter(({ label, id }) => `${label} ${id}`.toLowerCase().includes(wanted));
  return html`<aside class="panel card" aria-label="Drawn nodes">
    <div class="body">
      <input
        class="input"
        type="search"
        aria-label="Find a node"
        placeholder="Find a node"
        value=${text}
        onInput=${(event) => setText(event.target.value)}
      />
    </div>
    ${nodes.length === 0 ? html`<div class="body"><${Empty}>Nothing is drawn yet.<//></div>` : null}
    <ul class="list">
      ${found.slice(0, LISTED_MAX).map(
        (each) =>
          html`<li key=${each.key}>
            <button class="button plain" onClick=${() => onSelect(each.key)}>
              <${TypeDot} kind="node" name=${each.type} />${each.label}
            </button>
          </li>`,
      )}
    </ul>
    ${found.length > LISTED_MAX ? html`<p class="body muted">and ${formatCount(found.length - LISTED_MAX)} more</p>` : null}
  </aside>`;
}

function Hops({ node, isBusy, onExpand }) {
  const { api, catalog, state, stateKey } = useGraph();
  const hops = catalog.listEdgesOf(node.type);
  const degrees = useLoad(
    (signal) =>
      Promise.all(
        hops.map((hop) =>
          api
            .query(state, buildDegree(node.type, hop), { id: node.id }, signal)
            .then((answer) => answer.rows[0]?.edges ?? 0),
        ),
      ),
    [api, stateKey, node.key],
  );
  return html`<div class="body stack" style=${{ gap: "4px" }}>
    <${Loaded} load=${degrees}
      >${(counts) =>
        counts.every((count) => count === 0)
          ? html`<span class="muted">Nothing is joined to it.</span>`
          : hops.map((hop, at) =>
              counts[at] === 0
                ? null
                : html`<button
                    class="button plain"
                    disabled=${isBusy}
                    style=${{ justifyContent: "flex-start" }}
                    key=${`${hop.edge.name} ${hop.direction}`}
                    onClick=${() => onExpand(node, [hop])}
                  >
                    <span class="muted">${hop.direction === "out" ? "→" : "←"}</span>
                    ${hop.edge.name} <span class="muted">${hop.other}</span>
                    <span class="badge">${formatCount(counts[at])}</span>
                  </button>`,
            )}<//
    >
    ${isBusy ? html`<${Busy} text="Expanding" />` : null}
  </div>`;
}
