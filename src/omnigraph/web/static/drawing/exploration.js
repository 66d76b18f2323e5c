/**
 * What has been explored of a graph: nodes and edges that were asked for, up to a cap. Values are
 * never changed, so that a page sees by identity that something was added.
 */
import { buildNeighbours } from "../graph_queries.js";
import { labelOf } from "../components/entity_link.js";

// Without a graphics card a picture of so many costs about 41 ms of CPU, on all cores together.
export const NODES_MAX = 1_000;
export const HOP_MAX = 500;

export const EMPTY = { nodes: new Map(), edges: new Map(), isCut: false };

export function keyOf(type, id) {
  return `${type} ${id}`;
}

export function nodeOf(type, object) {
  const id = object["@id"];
  return {
    key: keyOf(type.name, id),
    type: type.name,
    id,
    label: labelOf(type, object),
    object,
  };
}

/** The same exploration with more in it; nodes beyond the cap, and their edges, are left out. */
export function extend(explored, nodes, edges) {
  const kept = new Map(explored.nodes);
  let { isCut } = explored;
  for (const node of nodes) {
    if (kept.has(node.key)) continue;
    if (kept.size >= NODES_MAX) isCut = true;
    else kept.set(node.key, node);
  }
  const joined = new Map(explored.edges);
  for (const edge of edges) {
    if (kept.has(edge.source) && kept.has(edge.target)) joined.set(edge.key, edge);
  }
  return { nodes: kept, edges: joined, isCut };
}

export function remove(explored, key) {
  const nodes = new Map(explored.nodes);
  nodes.delete(key);
  const edges = new Map(
    [...explored.edges].filter(([, edge]) => edge.source !== key && edge.target !== key),
  );
  return { nodes, edges, isCut: false };
}

/** The neighbours of a node over some edge types, at most so many over each. */
export async function readNeighbours(graph, node, hops, signal) {
  const answers = await Promise.all(
    hops.map(async (hop) => {
      const text = buildNeighbours(node.type, hop, HOP_MAX + 1);
      const answer = await graph.api.query(graph.state, text, { id: node.id }, signal);
      return {
        hop,
        rows: answer.rows.slice(0, HOP_MAX),
        isMore: answer.rows.length > HOP_MAX,
      };
    }),
  );
  const nodes = [];
  const edges = [];
  for (const { hop, rows } of answers) {
    const other = graph.catalog.find("node", hop.other);
    for (const row of rows) {
      const found = nodeOf(other, row.x);
      nodes.push(found);
      const [source, target] =
        hop.direction === "out" ? [node.key, found.key] : [found.key, node.key];
      edges.push({
        key: keyOf(hop.edge.name, row.edge),
        type: hop.edge.name,
        id: row.edge,
        source,
        target,
      });
    }
  }
  return { nodes, edges, isMore: answers.some((each) => each.isMore) };
}
