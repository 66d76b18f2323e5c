/** Exploring: from a node to its neighbours, and on from there. */
import { html, useCallback, useEffect, useState } from "../../vendor/preact.js";
import { ExplorePanel } from "../components/explore_panel.js";
import { ExploreStart } from "../components/explore_start.js";
import { Failure } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import {
  EMPTY,
  extend,
  nodeOf,
  NODES_MAX,
  readNeighbours,
  remove,
} from "../drawing/exploration.js";
import { findPath } from "../drawing/find_path.js";
import { GraphView } from "../drawing/graph_view.js";
import { useDrawn } from "../drawing/use_drawn.js";
import { formatCount, pluralize } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { buildById } from "../graph_queries.js";
import { buildAddress, navigate, readPlace } from "../navigation.js";
import { useAction } from "../use_load.js";

export default function ExplorePage({ query }) {
  const graph = useGraph();
  const { catalog, stateKey } = graph;
  const [explored, setExplored] = useState(EMPTY);
  const [selected, setSelected] = useState(null);
  const [anchor, setAnchor] = useState(null);
  const [path, setPath] = useState([]);
  const start = useAction(async (type, id) => {
    const first = await readNode(graph, type, id);
    setExplored((before) => extend(before, [first], []));
    setSelected(first.key);
    const around = await readNeighbours(graph, first, catalog.listEdgesOf(type));
    setExplored((before) => extend(before, around.nodes, around.edges));
    return around;
  });
  const expanding = useAction(async (node, hops) => {
    const found = await readNeighbours(graph, node, hops);
    setExplored((before) => extend(before, found.nodes, found.edges));
    return found;
  });
  const joining = useAction(async (from, to) => {
    const found = await findPath(graph, from, to);
    if (found === null) throw new Error(`No path was found from ${from.label} to ${to.label}.`);
    const nodes = await Promise.all(found.nodes.map((each) => readNode(graph, each.type, each.id)));
    setExplored((before) => extend(before, nodes, found.edges));
    setPath([...found.nodes, ...found.edges].map((each) => each.key));
    setAnchor(null);
  });
  const [type, id] = [query.get("type"), query.get("id")];
  useEffect(() => {
    setExplored(EMPTY);
    setPath([]);
    setAnchor(null);
    setSelected(null);
    if (type !== null && id !== null) start.run(type, id);
  }, [stateKey, type, id]);
  const expandAll = useCallback(
    (key) => {
      const node = explored.nodes.get(key);
      if (node) expanding.run(node, catalog.listEdgesOf(node.type));
    },
    [explored, catalog],
  );
  const { nodes, edges, legend } = useDrawn(explored, catalog);
  const open = (chosenType, chosenId) => {
    const { parts } = readPlace();
    const kept = Object.fromEntries(
      [...readPlace().query].filter(([name]) => name === "branch" || name === "at"),
    );
    navigate(buildAddress(parts, { ...kept, type: chosenType, id: chosenId }));
  };
  const failure = start.error ?? expanding.error ?? joining.error;
  const remark = explored.isCut
    ? `Only ${formatCount(NODES_MAX)} nodes are drawn: remove some to see others`
    : (expanding.data ?? start.data)?.isMore
      ? "Of more than 500 neighbours over one edge type, 500 are drawn"
      : null;
  return html`<div class="content full">
    <div class="stack" style=${{ gap: "8px" }}>
      <${PageHead}
        title="Explore"
        sub=${
          nodes.length === 0
            ? "Choose where to start."
            : `${pluralize(nodes.length, "node")}, ${pluralize(edges.length, "edge")}; a double click expands`
        }
      >
        <${ExploreStart} onOpen=${open} />
      <//>
      <${Failure} error=${failure} />
    </div>
    <div class="with-panel">
      <${GraphView}
        label="Explored nodes"
        nodes=${nodes}
        edges=${edges}
        legend=${legend}
        selected=${selected}
        marked=${path}
        remark=${remark}
        onSelect=${setSelected}
        onOpen=${expandAll}
      />
      <${ExplorePanel}
        node=${explored.nodes.get(selected) ?? null}
        nodes=${[...explored.nodes.values()]}
        onSelect=${setSelected}
        isBusy=${expanding.isBusy || joining.isBusy}
        anchor=${anchor}
        hasPath=${path.length > 0}
        onExpand=${(node, hops) => expanding.run(node, hops)}
        onRemove=${(node) => {
          setExplored((before) => remove(before, node.key));
          setSelected(null);
        }}
        onAnchor=${setAnchor}
        onJoin=${(node) => joining.run(anchor, node)}
        onClearPath=${() => setPath([])}
      />
    </div>
  </div>`;
}

async function readNode(graph, typeName, id) {
  const type = graph.catalog.find("node", typeName);
  const answer =
    type === null ? { rows: [] } : await graph.api.query(graph.state, buildById(type), { id });
  if (answer.rows.length === 0) throw new Error(`There is no ${typeName} '${id}' here.`);
  return nodeOf(type, answer.rows[0].x);
}
