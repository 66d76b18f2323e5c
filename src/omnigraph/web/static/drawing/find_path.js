/** A shortest path between two nodes: a search in breadth, one query for each edge type and step. */
import { writeEdge } from "../graph_queries.js";
import { keyOf } from "./exploration.js";

const STEPS_MAX = 6;
const FRONTIER_MAX = 5_000;
const EDGES_MAX = 20_000;

function buildStep(type, { edge, direction, other }) {
  const hop = writeEdge(edge.name);
  const pattern = direction === "out" ? `$a $e:${hop} $x` : `$x $e:${hop} $a`;
  return `query step($ids: [String]) {
  match {
    $a: ${type}
    $x: ${other}
    $a.@id in $ids
    ${pattern}
  }
  return { $a.@id as own, $e.@id as edge, $x.@id as other }
  limit ${EDGES_MAX}
}`;
}

function groupByType(frontier) {
  const groups = new Map();
  for (const { type, id } of frontier) groups.set(type, [...(groups.get(type) ?? []), id]);
  return groups;
}

/** The nodes that a frontier reaches and that were not reached before, with the edge to each. */
async function takeStep(graph, frontier, reached, signal) {
  const asked = [...groupByType(frontier)].flatMap(([type, ids]) =>
    graph.catalog.listEdgesOf(type).map(async (hop) => {
      const answer = await graph.api.query(graph.state, buildStep(type, hop), { ids }, signal);
      return { type, hop, rows: answer.rows };
    }),
  );
  const next = [];
  for (const { type, hop, rows } of await Promise.all(asked)) {
    for (const row of rows) {
      const key = keyOf(hop.other, row.other);
      if (reached.has(key)) continue;
      reached.set(key, { from: keyOf(type, row.own), hop, edge: row.edge });
      next.push({ key, type: hop.other, id: row.other });
    }
  }
  return next;
}

/** The path as `{nodes: [{type, id, key}], edges}`, or null if there is none within the bounds. */
export async function findPath(graph, from, to, signal) {
  const reached = new Map([[from.key, null]]);
  const known = new Map([[from.key, from]]);
  let frontier = [from];
  for (let step = 0; step < STEPS_MAX && frontier.length > 0; step += 1) {
    frontier = (await takeStep(graph, frontier, reached, signal)).slice(0, FRONTIER_MAX);
    for (const node of frontier) known.set(node.key, node);
    if (reached.has(to.key)) return walkBack(reached, known, from, to);
  }
  return null;
}

function walkBack(reached, known, from, to) {
  const nodes = [to];
  const edges = [];
  let { key } = to;
  while (key !== from.key) {
    const { from: before, hop, edge } = reached.get(key);
    const [source, target] = hop.direction === "out" ? [before, key] : [key, before];
    edges.push({
      key: keyOf(hop.edge.name, edge),
      type: hop.edge.name,
      id: edge,
      source,
      target,
    });
    nodes.push(known.get(before));
    key = before;
  }
  return { nodes: nodes.reverse(), edges: edges.reverse() };
}
