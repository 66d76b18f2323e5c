/** A diff as a graph: what was added, changed and removed in three colours, what it hangs on in grey. */
import { html, useMemo, useState } from "../../vendor/preact.js";
import { keyOf, NODES_MAX } from "../drawing/exploration.js";
import { GraphView } from "../drawing/graph_view.js";
import { formatCount } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { findLabel } from "../graph_queries.js";
import { navigate } from "../navigation.js";
import { useTheme } from "./use_theme.js";

const COLOURS = {
  light: {
    insert: "#2c8a57",
    update: "#c07a08",
    delete: "#c43434",
    same: "#a7b0bf",
  },
  dark: {
    insert: "#6fcf97",
    update: "#f0b95a",
    delete: "#ff8f8f",
    same: "#566174",
  },
};
const NAMES = {
  insert: "added",
  update: "changed",
  delete: "removed",
  same: "unchanged",
};

function labelChange(change, catalog) {
  const type = catalog.find("node", change.type.name);
  const label = type && findLabel(type);
  return String((label && (change.after ?? change.before).properties[label.name]) ?? change.id);
}

/** Nodes and edges of the changes; ends that did not change are drawn too. */
function buildGraph(changes, catalog, colours) {
  const nodes = new Map();
  const edges = [];
  for (const change of changes.filter((each) => each.kind === "node")) {
    const key = keyOf(change.type.name, change.id);
    nodes.set(key, {
      key,
      label: labelChange(change, catalog),
      colour: colours[change.op],
      size: 8,
      type: change.type.name,
      id: change.id,
    });
  }
  for (const change of changes.filter((each) => each.kind === "edge")) {
    const type = catalog.find("edge", change.type.name);
    const ends = (change.after ?? change.before).endpoints;
    const [source, target] = [keyOf(type?.source, ends.from), keyOf(type?.target, ends.to)];
    for (const [key, id, name] of [
      [source, ends.from, type?.source],
      [target, ends.to, type?.target],
    ]) {
      if (!nodes.has(key))
        nodes.set(key, {
          key,
          label: id,
          colour: colours.same,
          size: 5,
          type: name,
          id,
        });
    }
    edges.push({
      key: keyOf(change.type.name, change.id),
      source,
      target,
      colour: colours[change.op],
      size: 2,
    });
  }
  const kept = new Map([...nodes].slice(0, NODES_MAX));
  return {
    nodes: [...kept.values()],
    edges: edges.filter((edge) => kept.has(edge.source) && kept.has(edge.target)),
    isCut: nodes.size > kept.size,
  };
}

export function DiffGraph({ changes }) {
  const { catalog, address } = useGraph();
  const colours = COLOURS[useTheme()];
  const [selected, setSelected] = useState(null);
  const { nodes, edges, isCut } = useMemo(
    () => buildGraph(changes, catalog, colours),
    [changes, catalog, colours],
  );
  const open = (key) => {
    const node = nodes.find((each) => each.key === key);
    if (node) navigate(address("entities", ["node", node.type, node.id]));
  };
  const legend = Object.entries(NAMES).map(([op, name]) => ({
    name,
    colour: colours[op],
  }));
  const remark = isCut ? `Only ${formatCount(NODES_MAX)} nodes are drawn` : null;
  return html`<div style=${{ height: "520px" }}>
    <${GraphView}
      label="Changed entities"
      nodes=${nodes}
      edges=${edges}
      legend=${legend}
      remark=${remark}
      selected=${selected}
      onSelect=${setSelected}
      onOpen=${open}
    />
  </div>`;
}
