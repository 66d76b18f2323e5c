/** Where an exploration starts: a type, and the id of one of its nodes. */
import { html, useState } from "../../vendor/preact.js";
import { useGraph } from "../graph_context.js";
import { findLabel, listReadable } from "../graph_queries.js";
import { useLoad } from "../use_load.js";

const SUGGESTIONS_MAX = 12;

function buildSuggestions(type, prefix) {
  const label = findLabel(type);
  const shown =
    label === null || !listReadable(type).includes(label) ? "$x.@id" : `$x.${label.name}`;
  const filter = prefix === "" || shown === "$x.@id" ? "" : `    ${shown} contains $q\n`;
  const declared = filter === "" ? "" : "$q: String";
  return {
    text: `query some(${declared}) {\n  match {\n    $x: ${type.name}\n${filter}  }\n  return { $x.@id as id, ${shown} as label }\n  order { $x.@id }\n  limit ${SUGGESTIONS_MAX}\n}`,
    params: filter === "" ? {} : { q: prefix },
  };
}

export function ExploreStart({ onOpen }) {
  const { api, catalog, state, stateKey } = useGraph();
  const [name, setName] = useState(catalog.nodes[0]?.name ?? "");
  const [id, setId] = useState("");
  const type = catalog.find("node", name);
  const found = useLoad(
    (signal) => {
      if (type === null) return Promise.resolve({ rows: [] });
      const { text, params } = buildSuggestions(type, id.trim());
      return api.query(state, text, params, signal);
    },
    [api, stateKey, name, id],
  );
  const submit = (event) => {
    event.preventDefault();
    const rows = found.data?.rows ?? [];
    const exact = rows.find((row) => row.id === id.trim() || row.label === id.trim());
    onOpen(name, exact?.id ?? (id.trim() || rows[0]?.id || ""));
  };
  return html`<form class="row" onSubmit=${submit} aria-label="Start">
    <select
      class="select"
      aria-label="Type"
      value=${name}
      onChange=${(event) => setName(event.target.value)}
    >
      ${catalog.nodes.map((each) => html`<option key=${each.name} value=${each.name}>${each.name}</option>`)}
    </select>
    <input
      class="input"
      style=${{ width: "220px" }}
      list="starts"
      aria-label="Node"
      placeholder="Name or id"
      value=${id}
      onInput=${(event) => setId(event.target.value)}
    />
    <datalist id="starts">
      ${(found.data?.rows ?? []).map((row) => html`<option key=${row.id} value=${row.id}>${row.label}</option>`)}
    </datalist>
    <button class="button primary">Start here</button>
  </form>`;
}
