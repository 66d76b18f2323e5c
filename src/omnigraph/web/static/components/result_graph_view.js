/** The answer to a query as a graph: its nodes, and the edges between them. */
import { html, useState } from "../../vendor/preact.js";
import { EMPTY, NODES_MAX } from "../drawing/exploration.js";
import { GraphView } from "../drawing/graph_view.js";
import { readResultGraph } from "../drawing/result_graph.js";
import { useDrawn } from "../drawing/use_drawn.js";
import { formatCount } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { navigate } from "../navigation.js";
import { useLoad } from "../use_load.js";
import { Empty, Failure } from "./notices.js";

export function ResultGraphView({ rows, nodes: columns }) {
  const graph = useGraph();
  const [selected, setSelected] = useState(null);
  const found = useLoad(
    (signal) => readResultGraph(graph, rows, columns, signal),
    [graph.stateKey, rows],
  );
  const explored = found.data ?? EMPTY;
  const { nodes, edges, legend } = useDrawn(explored, graph.catalog);
  if (Object.keys(columns).length === 0) {
    return html`<div class="body">
      <${Empty}>Return whole nodes to see them as a graph: ${"return { $x }"}.<//>
    </div>`;
  }
  const open = (key) => {
    const { type, id } = explored.nodes.get(key);
    navigate(graph.address("entities", ["node", type, id]));
  };
  return html`<div class="body" style=${{ height: "520px" }}>
    <${Failure} error=${found.error} />
    <${GraphView}
      label="Nodes of the answer"
      nodes=${nodes}
      edges=${edges}
      legend=${legend}
      selected=${selected}
      onSelect=${setSelected}
      onOpen=${open}
      remark=${explored.isCut ? `Only ${formatCount(NODES_MAX)} nodes are drawn` : null}
    />
  </div>`;
}
