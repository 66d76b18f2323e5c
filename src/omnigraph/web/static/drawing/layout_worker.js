/**
 * Places nodes by forces, away from the thread that draws. In: places and edges as numbers. Out:
 * places again and again, until the rounds are over or another graph comes in.
 */
import { iterate } from "../../vendor/forces.js";

const PER_NODE = 10;
const PER_EDGE = 3;
const SLICE_MS = 24;
const SETTINGS = {
  adjustSizes: false,
  barnesHutTheta: 0.6,
  edgeWeightInfluence: 0,
  gravity: 0.6,
  linLogMode: false,
  outboundAttractionDistribution: false,
  scalingRatio: 12,
  slowDown: 4,
  strongGravityMode: true,
};
// Comparing all pairs is faster up to so many nodes.
const PAIRS_MAX = 400;

let turn = 0;

onmessage = ({ data: { places, edges, rounds } }) => {
  turn += 1;
  const [nodes, links] = buildMatrices(places, edges);
  const settings = {
    ...SETTINGS,
    barnesHutOptimize: places.length / 2 > PAIRS_MAX,
  };
  runSlice({ nodes, links, settings, left: rounds, turn });
};

function buildMatrices(places, edges) {
  const nodes = new Float32Array((places.length / 2) * PER_NODE);
  for (let at = 0; at < places.length / 2; at += 1) {
    const row = at * PER_NODE;
    nodes[row] = places[at * 2];
    nodes[row + 1] = places[at * 2 + 1];
    nodes[row + 6] = 1;
    nodes[row + 7] = 1;
    nodes[row + 8] = 1;
  }
  const links = new Float32Array((edges.length / 2) * PER_EDGE);
  for (let at = 0; at < edges.length / 2; at += 1) {
    const [source, target] = [edges[at * 2] * PER_NODE, edges[at * 2 + 1] * PER_NODE];
    links.set([source, target, 1], at * PER_EDGE);
    nodes[source + 6] += 1;
    nodes[target + 6] += 1;
  }
  return [nodes, links];
}

function runSlice(work) {
  if (work.turn !== turn) return;
  const start = performance.now();
  while (work.left > 0 && performance.now() - start < SLICE_MS) {
    iterate(work.settings, work.nodes, work.links);
    work.left -= 1;
  }
  const places = new Float32Array((work.nodes.length / PER_NODE) * 2);
  for (let at = 0; at < places.length / 2; at += 1) {
    places[at * 2] = work.nodes[at * PER_NODE];
    places[at * 2 + 1] = work.nodes[at * PER_NODE + 1];
  }
  postMessage({ places, isOver: work.left === 0 }, [places.buffer]);
  // Between two slices a newer graph may come in.
  if (work.left > 0) setTimeout(runSlice, 0, work);
}
