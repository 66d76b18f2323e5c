// Draws the nodes and edges of a model on a canvas: drag a node or the page, turn the wheel to
// zoom, click to select. It loads nothing.

const OP_COLOURS = { insert: "#2da44e", update: "#bf8700", delete: "#cf222e" };
// The work of a step grows with the square of the nodes: large graphs get fewer of them.
const STEPS_MIN = 60, STEPS_MAX = 300, PAIRS_MAX = 4e6;
const RADIUS = 7;

function colourOf(types, type) {
  // Neighbouring hues of a list differ by the golden angle.
  return `hsl(${(types.indexOf(type) * 137.5) % 360} 55% 52%)`;
}

function layOut(nodes, edges) {
  const angle = (2 * Math.PI) / Math.max(1, nodes.length);
  const size = 40 * Math.sqrt(nodes.length + 1);
  nodes.forEach((node, i) => {
    node.x = size * Math.cos(i * angle);
    node.y = size * Math.sin(i * angle);
  });
  const wanted = Math.round(PAIRS_MAX / (nodes.length * nodes.length + 1));
  const steps = nodes.length > 1 ? Math.max(STEPS_MIN, Math.min(STEPS_MAX, wanted)) : 0;
  for (let step = 0; step < steps; step++) {
    moveApart(nodes, edges, size * 0.1 * (1 - step / steps));
  }
}

function moveApart(nodes, edges, limit) {
  const distance = 70;
  for (const node of nodes) { node.dx = -node.x * 0.02; node.dy = -node.y * 0.02; }
  for (let i = 0; i < nodes.length; i++) {
    for (let j = i + 1; j < nodes.length; j++) {
      const a = nodes[i], b = nodes[j];
      const x = a.x - b.x + 0.01 * (i - j), y = a.y - b.y + 0.01;
      const force = (distance * distance) / (x * x + y * y + 1);
      a.dx += x * force; a.dy += y * force;
      b.dx -= x * force; b.dy -= y * force;
    }
  }
  for (const { a, b } of edges) {
    const x = b.x - a.x, y = b.y - a.y, force = Math.hypot(x, y) / distance;
    a.dx += x * force * 0.3; a.dy += y * force * 0.3;
    b.dx -= x * force * 0.3; b.dy -= y * force * 0.3;
  }
  for (const node of nodes) {
    const length = Math.hypot(node.dx, node.dy) || 1, step = Math.min(length, limit);
    node.x += (node.dx / length) * step;
    node.y += (node.dy / length) * step;
  }
}

function readModel(model) {
  const nodes = model.get("nodes").map((node) => ({ ...node }));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const edges = model.get("edges")
    .map((edge) => ({ ...edge, a: byId.get(edge.source), b: byId.get(edge.target) }))
    .filter((edge) => edge.a && edge.b);
  const types = [...new Set(nodes.map((node) => node.type))].sort();
  layOut(nodes, edges);
  return { nodes, edges, types };
}

function fitView(nodes, width, height) {
  const xs = nodes.map((node) => node.x), ys = nodes.map((node) => node.y);
  const low = [Math.min(0, ...xs), Math.min(0, ...ys)];
  const high = [Math.max(0, ...xs), Math.max(0, ...ys)];
  const wanted = [high[0] - low[0] + 120, high[1] - low[1] + 80];
  const scale = Math.min(2, width / wanted[0], height / wanted[1]);
  return {
    scale,
    x: width / 2 - (scale * (low[0] + high[0])) / 2,
    y: height / 2 - (scale * (low[1] + high[1])) / 2,
  };
}

function drawEdge(context, edge, colour, isSelected) {
  const { a, b } = edge, x = b.x - a.x, y = b.y - a.y, length = Math.hypot(x, y) || 1;
  context.strokeStyle = context.fillStyle = OP_COLOURS[edge.op] || colour;
  context.globalAlpha = isSelected || edge.op ? 1 : 0.45;
  context.lineWidth = isSelected ? 2.5 : 1.2;
  context.beginPath();
  if (a === b) {
    context.arc(a.x, a.y - RADIUS * 2, RADIUS * 1.5, 0, 2 * Math.PI);
    context.stroke();
  } else {
    const tip = { x: b.x - (x / length) * (RADIUS + 1), y: b.y - (y / length) * (RADIUS + 1) };
    context.moveTo(a.x, a.y);
    context.lineTo(tip.x, tip.y);
    context.stroke();
    context.beginPath();
    context.moveTo(tip.x, tip.y);
    for (const side of [0.4, -0.4]) {
      const turn = Math.atan2(y, x) + side;
      context.lineTo(tip.x - 8 * Math.cos(turn), tip.y - 8 * Math.sin(turn));
    }
    context.fill();
  }
  context.globalAlpha = 1;
}

function drawNode(context, node, types, colour, isSelected) {
  context.beginPath();
  context.arc(node.x, node.y, isSelected ? RADIUS + 2 : RADIUS, 0, 2 * Math.PI);
  context.fillStyle = colourOf(types, node.type);
  context.fill();
  if (node.op || isSelected) {
    context.lineWidth = 3;
    context.strokeStyle = OP_COLOURS[node.op] || colour;
    context.stroke();
  }
  context.fillStyle = colour;
  context.fillText(node.label, node.x + RADIUS + 3, node.y + 4);
}

function distanceToEdge(edge, x, y) {
  const { a, b } = edge, dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy || 1;
  const t = Math.max(0, Math.min(1, ((x - a.x) * dx + (y - a.y) * dy) / length));
  return Math.hypot(x - a.x - t * dx, y - a.y - t * dy);
}

function find(scene, x, y) {
  const node = scene.nodes.find((each) => Math.hypot(each.x - x, each.y - y) <= RADIUS + 3);
  return node || scene.edges.find((each) => distanceToEdge(each, x, y) < 4) || null;
}

function describe(thing) {
  const { type, label, source, target, op, data } = thing;
  const head = source ? { type, from: source, to: target } : { type, label };
  return { ...head, ...(op ? { change: op } : {}), ...data };
}

function showDetails(element, thing) {
  element.replaceChildren();
  if (!thing) return;
  for (const [name, value] of Object.entries(describe(thing))) {
    const row = element.insertRow();
    row.insertCell().textContent = name;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    row.insertCell().textContent = String(text).slice(0, 300);
  }
}

function showLegend(element, types) {
  element.replaceChildren(...types.map((type) => {
    const entry = document.createElement("span"), dot = document.createElement("i");
    dot.style.background = colourOf(types, type);
    entry.append(dot, type);
    return entry;
  }));
}

function render({ model, el }) {
  el.classList.add("omnigraph-graph");
  const canvas = document.createElement("canvas"), legend = document.createElement("div");
  const note = document.createElement("div"), details = document.createElement("table");
  legend.className = "legend";
  note.className = "note";
  el.append(canvas, legend, note, details);
  let scene, view, selected = null, held = null;

  function paint() {
    const ratio = window.devicePixelRatio || 1, height = model.get("height");
    const width = canvas.clientWidth || 600, colour = getComputedStyle(el).color;
    canvas.style.height = `${height}px`;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    view = view || fitView(scene.nodes, width, height);
    const context = canvas.getContext("2d");
    context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
    context.font = "11px sans-serif";
    for (const edge of scene.edges) drawEdge(context, edge, colour, edge === selected);
    for (const node of scene.nodes) drawNode(context, node, scene.types, colour, node === selected);
  }

  function load() {
    scene = readModel(model);
    view = selected = held = null;
    note.textContent = model.get("note");
    showLegend(legend, scene.types);
    showDetails(details, null);
    paint();
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    return { x, y, inner: [(x - view.x) / view.scale, (y - view.y) / view.scale] };
  }

  canvas.addEventListener("pointerdown", (event) => {
    const { x, y, inner } = place(event), thing = find(scene, ...inner);
    held = { x, y, node: thing && thing.id ? thing : null };
    selected = thing;
    const { a, b, x: _x, y: _y, dx, dy, ...plain } = thing || {};
    model.set("selected", plain);
    model.save_changes();
    showDetails(details, thing);
    canvas.setPointerCapture(event.pointerId);
    paint();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    const { x, y, inner } = place(event);
    if (held.node) [held.node.x, held.node.y] = inner;
    else { view.x += x - held.x; view.y += y - held.y; }
    held.x = x;
    held.y = y;
    paint();
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { x, y, inner } = place(event);
    view.scale = Math.max(0.05, Math.min(8, view.scale * Math.exp(-event.deltaY / 400)));
    view.x = x - inner[0] * view.scale;
    view.y = y - inner[1] * view.scale;
    paint();
  }, { passive: false });

  model.on("change:nodes change:edges change:note change:height", load);
  const observer = new ResizeObserver(() => paint());
  load();
  observer.observe(canvas);
  return () => observer.disconnect();
}

export default { render };
