/** The nodes of an answer, and the edges of the graph between them. */
import { writeEdge } from "../graph_queries.js";
import { EMPTY, extend, keyOf, nodeOf } from "./exploration.js";

const EDGES_MAX = 4_000;

function buildEdges(edge) {
  return `query between($from: [String], $to: [String]) {
  match {
    $a: ${edge.source}
    $b: ${edge.target}
    $a.@id in $from
    $b.@id in $to
    $a $e:${writeEdge(edge.name)} $b
  }
  return { $e.@id as edge, $e.@src as own, $e.@dst as other }
  limit ${EDGES_MAX}
}`;
}

/** The whole nodes of some rows; `columns` has the node type of each column that holds them. */
function listNodes(rows, columns, catalog) {
  const types = Object.entries(columns).map(([name, type]) => [name, catalog.find("node", type)]);
  return rows.flatMap((row) =>
    types.flatMap(([name, type]) => (row[name] && type ? [nodeOf(type, row[name])] : [])),
  );
}

export async function readResultGraph(graph, rows, columns, signal) {
  const drawn = extend(EMPTY, listNodes(rows, columns, graph.catalog), []);
  const idsOf = (type) =>
    [...drawn.nodes.values()].filter((node) => node.type === type).map((node) => node.id);
  const asked = graph.catalog.edges.map(async (edge) => {
    const [from, to] = [idsOf(edge.source), idsOf(edge.target)];
    if (from.length === 0 || to.length === 0) return [];
    const answer = await graph.api.query(graph.state, buildEdges(edge), { from, to }, signal);
    return answer.rows.map((row) => ({
      key: keyOf(edge.name, row.edge),
      type: edge.name,
      id: row.edge,
      source: keyOf(edge.source, row.own),
      target: keyOf(edge.target, row.other),
    }));
  });
  return extend(drawn, [], (await Promise.all(asked)).flat());
}
