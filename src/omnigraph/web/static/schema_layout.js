/**
 * Where the boxes of a schema stand: in rows, so that types that are joined stand close together.
 * The same schema always gives the same picture.
 */
const WIDTH = 190;
const GAP_X = 120;
const GAP_Y = 76;
// Where labels stand on the lines of one pair of types, so that none covers another.
const LABEL_PLACES = [0.42, 0.64, 0.28, 0.76, 0.5];
const MARGIN = 44;
const PASSES = 12;

function heightOf(type, linesMax) {
  const lines = Math.min(type.properties.length, linesMax + 1);
  return 32 + lines * 15;
}

/** Types in an order where neighbours follow each other: a walk in breadth from the most joined. */
function orderTypes(catalog) {
  const degreeOf = (name) =>
    catalog.edges.filter((edge) => edge.source === name || edge.target === name).length;
  const waiting = [...catalog.nodes].sort(
    (one, other) => degreeOf(other.name) - degreeOf(one.name) || one.name.localeCompare(other.name),
  );
  const order = [];
  const seen = new Set();
  for (const first of waiting) {
    const queue = [first];
    while (queue.length > 0) {
      const type = queue.shift();
      if (seen.has(type.name)) continue;
      seen.add(type.name);
      order.push(type);
      for (const { other } of catalog.listEdgesOf(type.name)) {
        queue.push(catalog.find("node", other));
      }
    }
  }
  return order;
}

/** Swaps of two cells, as long as one makes the lines shorter. */
function settle(cells, edges, columns) {
  const placeOf = new Map(cells.map((type, at) => [type.name, at]));
  const distance = (one, other) =>
    Math.hypot(
      (one % columns) - (other % columns),
      Math.floor(one / columns) - Math.floor(other / columns),
    );
  const costOf = (name) =>
    edges
      .filter((edge) => edge.source === name || edge.target === name)
      .reduce(
        (sum, edge) => sum + distance(placeOf.get(edge.source), placeOf.get(edge.target)) ** 1.5,
        0,
      );
  const swap = (one, other) => {
    [cells[one], cells[other]] = [cells[other], cells[one]];
    placeOf.set(cells[one].name, one);
    placeOf.set(cells[other].name, other);
  };
  for (let pass = 0; pass < PASSES; pass += 1) {
    let isBetter = false;
    for (let one = 0; one < cells.length; one += 1) {
      for (let other = one + 1; other < cells.length; other += 1) {
        const names = [cells[one].name, cells[other].name];
        const before = costOf(names[0]) + costOf(names[1]);
        swap(one, other);
        if (costOf(names[0]) + costOf(names[1]) < before - 1e-9) isBetter = true;
        else swap(one, other);
      }
    }
    if (!isBetter) return;
  }
}

/** Where a line from the middle of a box to a point leaves the box. */
function leave(box, point) {
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const [dx, dy] = [point.x - x, point.y - y];
  const scale = Math.min(
    box.width / 2 / Math.abs(dx || 1e-9),
    box.height / 2 / Math.abs(dy || 1e-9),
  );
  return { x: x + dx * scale, y: y + dy * scale };
}

/** An edge type from a node type to itself: a loop on the upper side of its box. */
function drawLoop(box, at) {
  const x = box.x + box.width - 34 - at * 60;
  return { path: `M${x} ${box.y}c-10 -34 34 -34 22 -2`, x: x + 12, y: box.y - 32 };
}

/** A point of a curve, between its start (0) and its end (1). */
function findPoint(start, control, end, part) {
  const mix = (name) =>
    (1 - part) ** 2 * start[name] + 2 * (1 - part) * part * control[name] + part ** 2 * end[name];
  return { x: mix("x"), y: mix("y") };
}

/** A line between two boxes; several of one pair are bent differently. */
function drawLine(from, to, at) {
  const middle = (box) => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });
  const [a, b] = [middle(from), middle(to)];
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  // Seen from the same end, whichever way the edges lead.
  const turn = from.type.name < to.type.name ? 1 : -1;
  const bend = turn * (at % 2 === 0 ? 1 : -1) * (18 + Math.floor(at / 2) * 44);
  const control = {
    x: (a.x + b.x) / 2 - ((b.y - a.y) / length) * bend,
    y: (a.y + b.y) / 2 + ((b.x - a.x) / length) * bend,
  };
  const [start, end] = [leave(from, control), leave(to, control)];
  return {
    path: `M${start.x} ${start.y}Q${control.x} ${control.y} ${end.x} ${end.y}`,
    ...findPoint(start, control, end, LABEL_PLACES[at % LABEL_PLACES.length]),
  };
}

function drawEdges(edges, boxOf) {
  const counts = new Map();
  return edges.map((edge) => {
    const pair = [edge.source, edge.target].sort().join(" ");
    const at = counts.get(pair) ?? 0;
    counts.set(pair, at + 1);
    const [from, to] = [boxOf.get(edge.source), boxOf.get(edge.target)];
    return { name: edge.name, ...(from === to ? drawLoop(from, at) : drawLine(from, to, at)) };
  });
}

export function placeBoxes(catalog, linesMax) {
  const columns = Math.max(1, Math.min(4, Math.ceil(Math.sqrt(catalog.nodes.length * 1.3))));
  const cells = orderTypes(catalog);
  settle(
    cells,
    catalog.edges.filter((edge) => edge.source !== edge.target),
    columns,
  );
  const boxes = [];
  let y = MARGIN;
  for (let row = 0; row * columns < cells.length; row += 1) {
    const types = cells.slice(row * columns, (row + 1) * columns);
    const tallest = Math.max(...types.map((type) => heightOf(type, linesMax)));
    types.forEach((type, at) => {
      const height = heightOf(type, linesMax);
      boxes.push({
        type,
        x: MARGIN + at * (WIDTH + GAP_X),
        y: y + (tallest - height) / 2,
        width: WIDTH,
        height,
      });
    });
    y += tallest + GAP_Y;
  }
  const boxOf = new Map(boxes.map((box) => [box.type.name, box]));
  return {
    boxes,
    lines: drawEdges(catalog.edges, boxOf),
    width: MARGIN * 2 + columns * (WIDTH + GAP_X) - GAP_X,
    height: Math.max(y - GAP_Y + MARGIN, 120),
  };
}
