/** The canvas as a part of a page, with its tools and its legend. */
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { Notice } from "../components/notices.js";
import { useTheme } from "../components/use_theme.js";
import { Icon } from "../icons.js";
import { GraphDrawing } from "./graph_drawing.js";

const PAINT = {
  light: {
    label: "#1a2230",
    faded: "#e2e6ec",
    emphasis: "#3552c8",
    ground: "#ffffff",
  },
  dark: {
    label: "#e3e8ef",
    faded: "#2a323e",
    emphasis: "#8fa7ff",
    ground: "#1b212b",
  },
};

export function hasWebGl() {
  return document.createElement("canvas").getContext("webgl2") !== null;
}

export function GraphView({
  label,
  nodes,
  edges,
  selected = null,
  marked = [],
  legend = [],
  remark,
  onSelect,
  onOpen,
}) {
  const host = useRef(null);
  const drawing = useRef(null);
  const calls = useRef({});
  const [isUsable] = useState(hasWebGl);
  const theme = useTheme();
  calls.current = { onSelect, onOpen };
  useEffect(() => {
    if (!isUsable) return undefined;
    const made = new GraphDrawing(host.current, {
      onSelect: (key) => calls.current.onSelect?.(key),
      onOpen: (key) => calls.current.onOpen?.(key),
    });
    drawing.current = made;
    return () => made.end();
  }, []);
  useEffect(() => drawing.current?.paint(PAINT[theme]), [theme]);
  useEffect(() => drawing.current?.show({ nodes, edges }), [nodes, edges]);
  useEffect(() => drawing.current?.select(selected), [selected, nodes]);
  useEffect(() => drawing.current?.mark(marked), [marked]);
  if (!isUsable) {
    return html`<${Notice} kind="warn"
      >This browser has no WebGL, which the drawing needs. Tables show the same.<//
    >`;
  }
  return html`<div
    class="drawing"
    role="figure"
    aria-label=${label}
    data-nodes=${nodes.length}
    data-edges=${edges.length}
  >
    <div class="stage" ref=${host}></div>
    ${remark ? html`<div class="remark"><span class="badge warn" role="status">${remark}</span></div>` : null}
    <div class="legend">
      ${legend.map(
        (each) =>
          html`<span key=${each.name}>
            <span class="dot" style=${{ "--dot": each.colour }} aria-hidden="true"></span
            >${each.name}
          </span>`,
      )}
    </div>
    <div class="tools">
      ${[
        ["plus", "Nearer", 0.66],
        ["minus", "Farther", 1.5],
      ].map(
        ([icon, title, factor]) =>
          html`<button
            key=${icon}
            class="button"
            title=${title}
            aria-label=${title}
            onClick=${() => drawing.current.zoom(factor)}
          >
            <${Icon} name=${icon} />
          </button>`,
      )}
      <button
        class="button"
        title="Show all"
        aria-label="Show all"
        onClick=${() => drawing.current.fit()}
      >
        <${Icon} name="fit" />
      </button>
    </div>
  </div>`;
}
