/**
 * A graph on a canvas. Nodes are `{key, label, colour, size}`, edges `{key, source, target, colour}`;
 * what is drawn follows `show`, and what was there before keeps its place.
 */
import { EdgeArrowProgram, EdgeRectangleProgram, Graph, Sigma } from "../../vendor/sigma.js";

const ROUNDS = 320;
// Beyond it lines without heads are drawn, which is much faster without a graphics card.
const ARROWS_MAX = 2_000;
const GOLDEN_ANGLE = 2.399963;

export class GraphDrawing {
  constructor(host, { onSelect, onOpen }) {
    this.graph = new Graph({ multi: true, type: "directed" });
    this.selected = null;
    this.marked = new Set();
    this.sigma = new Sigma(this.graph, host, {
      allowInvalidContainer: true,
      defaultDrawNodeHover: (context, data, settings) => this.#drawHover(context, data, settings),
      defaultEdgeType: "line",
      edgeProgramClasses: {
        arrow: EdgeArrowProgram,
        line: EdgeRectangleProgram,
      },
      hideEdgesOnMove: true,
      hideLabelsOnMove: true,
      labelDensity: 0.6,
      labelFont: "system-ui, sans-serif",
      labelGridCellSize: 90,
      labelRenderedSizeThreshold: 5,
      labelSize: 12,
      minEdgeThickness: 1.4,
      nodeReducer: (key, data) => this.#paintNode(key, data),
      edgeReducer: (key, data) => this.#paintEdge(key, data),
      stagePadding: 70,
      zIndex: true,
    });
    this.sigma.on("clickNode", ({ node }) => onSelect?.(node));
    this.sigma.on("clickStage", () => onSelect?.(null));
    this.sigma.on("doubleClickNode", ({ node, event }) => {
      event.preventSigmaDefault();
      onOpen?.(node);
    });
    this.worker = new Worker(new URL("./layout_worker.js", import.meta.url), {
      type: "module",
    });
    this.worker.onmessage = ({ data }) => this.#place(data);
  }

  /** Draw exactly these nodes and edges. */
  show({ nodes, edges }) {
    const { graph } = this;
    const wanted = new Set(nodes.map((node) => node.key));
    const wantedEdges = new Set(edges.map((edge) => edge.key));
    for (const key of graph.filterEdges((key) => !wantedEdges.has(key))) graph.dropEdge(key);
    for (const key of graph.filterNodes((key) => !wanted.has(key))) graph.dropNode(key);
    const added = nodes.filter((node) => !graph.hasNode(node.key));
    const anchors = this.#findAnchors(added, edges);
    nodes.forEach((node, at) => this.#mergeNode(node, at, anchors));
    const type = edges.length > ARROWS_MAX ? "line" : "arrow";
    const isFewer = edges.length < graph.size;
    const isOther = graph.size > 0 && type !== this.edgeType;
    this.edgeType = type;
    for (const { key, source, target, colour, size = 1.5 } of edges) {
      const given = { color: colour, size, type };
      if (graph.hasEdge(key)) graph.mergeEdgeAttributes(key, given);
      else graph.addEdgeWithKey(key, source, target, given);
    }
    if (added.length > 0 || isFewer || isOther) this.#startLayout();
    else this.sigma.refresh();
  }

  #mergeNode({ key, label, colour, size = 6 }, at, anchors) {
    const given = { label, color: colour, size };
    if (this.graph.hasNode(key)) {
      this.graph.mergeNodeAttributes(key, given);
      return;
    }
    // A new node starts beside what it is joined to, or on a spiral, where no two lie together.
    const anchor = anchors.get(key) ?? { x: 0, y: 0, spread: 40 };
    const radius = anchor.spread * Math.sqrt((at % 500) + 1) * 0.2;
    const place = {
      x: anchor.x + radius * Math.cos(at * GOLDEN_ANGLE),
      y: anchor.y + radius * Math.sin(at * GOLDEN_ANGLE),
    };
    this.graph.addNode(key, { ...given, ...place });
  }

  #findAnchors(added, edges) {
    const anchors = new Map();
    const names = new Set(added.map((node) => node.key));
    for (const { source, target } of edges) {
      for (const [own, other] of [
        [source, target],
        [target, source],
      ]) {
        if (names.has(own) && this.graph.hasNode(other)) {
          const { x, y } = this.graph.getNodeAttributes(other);
          anchors.set(own, { x, y, spread: 10 });
        }
      }
    }
    return anchors;
  }

  #startLayout() {
    const { graph } = this;
    this.order = graph.nodes();
    const indexOf = new Map(this.order.map((key, at) => [key, at]));
    const places = new Float32Array(this.order.length * 2);
    this.order.forEach((key, at) => {
      const { x, y } = graph.getNodeAttributes(key);
      places.set([x, y], at * 2);
    });
    const edges = new Uint32Array(graph.size * 2);
    let at = 0;
    graph.forEachEdge((_key, _data, source, target) => {
      edges.set([indexOf.get(source), indexOf.get(target)], at);
      at += 2;
    });
    this.isPlaced = false;
    this.worker.postMessage({ places, edges, rounds: ROUNDS }, [places.buffer, edges.buffer]);
  }

  #place({ places, isOver }) {
    const { graph } = this;
    // A graph that changed meanwhile sends its own places.
    if (this.order.length !== graph.order) return;
    const indexOf = new Map(this.order.map((key, at) => [key, at]));
    graph.updateEachNodeAttributes(
      (key, data) => {
        const at = indexOf.get(key);
        return at === undefined ? data : { ...data, x: places[at * 2], y: places[at * 2 + 1] };
      },
      { attributes: ["x", "y"] },
    );
    this.isPlaced = isOver;
  }

  select(key) {
    this.selected = key !== null && this.graph.hasNode(key) ? key : null;
    this.sigma.refresh({ skipIndexation: true });
  }

  /** Emphasize some nodes and edges, such as those of a path. */
  mark(keys) {
    this.marked = new Set(keys);
    this.sigma.refresh({ skipIndexation: true });
  }

  paint({ label, faded, emphasis, ground }) {
    Object.assign(this, { faded, emphasis, ground });
    this.sigma.setSetting("labelColor", { color: label });
  }

  /** The node under the pointer, or the selected one: a ring, and its label on the ground. */
  #drawHover(context, data, settings) {
    const { x, y, size, label } = data;
    context.font = `600 ${settings.labelSize}px ${settings.labelFont}`;
    if (label) {
      const width = context.measureText(label).width;
      context.fillStyle = this.ground;
      context.beginPath();
      context.roundRect(
        x + size + 1,
        y - settings.labelSize / 2 - 4,
        width + 10,
        settings.labelSize + 8,
        4,
      );
      context.fill();
      context.fillStyle = settings.labelColor.color;
      context.fillText(label, x + size + 5, y + settings.labelSize / 3);
    }
    context.strokeStyle = this.emphasis;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, size + 2, 0, Math.PI * 2);
    context.stroke();
  }

  #paintNode(key, data) {
    if (key === this.selected)
      return { ...data, highlighted: true, size: data.size + 2, zIndex: 2 };
    if (this.marked.size === 0) return data;
    return this.marked.has(key)
      ? { ...data, size: data.size + 2, forceLabel: true, zIndex: 1 }
      : { ...data, color: this.faded, label: null };
  }

  #paintEdge(key, data) {
    if (this.marked.size === 0) return data;
    return this.marked.has(key)
      ? { ...data, color: this.emphasis, size: data.size + 2, zIndex: 1 }
      : { ...data, color: this.faded };
  }

  zoom(factor) {
    const camera = this.sigma.getCamera();
    camera.animate({ ratio: camera.ratio * factor }, { duration: 150 });
  }

  fit() {
    this.sigma.getCamera().animatedReset({ duration: 200 });
  }

  end() {
    this.worker.terminate();
    this.sigma.kill();
  }
}
