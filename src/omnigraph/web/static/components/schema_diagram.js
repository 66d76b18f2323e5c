/** A schema as a diagram: a box for each node type, a line for each edge type. */
import { html, useMemo } from "../../vendor/preact.js";
import { useGraph } from "../graph_context.js";
import { placeBoxes } from "../schema_layout.js";
import { colourOf } from "../type_colours.js";
import { navigate } from "../navigation.js";
import { useTheme } from "./use_theme.js";

const LINES_MAX = 6;

/** The name of a property with its type, cut to the width of a box. */
function describe(type, property) {
  const mark = type.key?.includes(property.name) ? "★ " : "";
  const text = `${mark}${property.name}: ${property.type}`;
  return text.length > 25 ? `${text.slice(0, 24)}…` : text;
}

export function SchemaDiagram() {
  const { catalog, address } = useGraph();
  const theme = useTheme();
  const { boxes, lines, width, height } = useMemo(() => placeBoxes(catalog, LINES_MAX), [catalog]);
  return html`<svg
    class="diagram"
    viewBox=${`0 0 ${width} ${height}`}
    style=${{ width: `${width}px`, maxWidth: "100%" }}
    role="img"
    aria-label="Types and how edges join them"
  >
    <defs>
      <marker
        id="arrow"
        viewBox="0 0 8 8"
        refX="7"
        refY="4"
        markerWidth="7"
        markerHeight="7"
        orient="auto"
      >
        <path d="M0 0 8 4 0 8z" />
      </marker>
    </defs>
    ${lines.map(
      (line) =>
        html`<g key=${line.name} class="line">
          <path d=${line.path} marker-end="url(#arrow)" />
          <text
            x=${line.x}
            y=${line.y}
            onClick=${() => navigate(address("types", ["edge", line.name]))}
          >
            ${line.name}
          </text>
        </g>`,
    )}
    ${boxes.map(
      ({ type, x, y, width: own, height: tall }) =>
        html`<g
          key=${type.name}
          class="box"
          transform=${`translate(${x} ${y})`}
          onClick=${() => navigate(address("types", ["node", type.name]))}
        >
          <rect width=${own} height=${tall} rx="8" />
          <rect
            class="mark"
            width="4"
            height=${tall}
            rx="2"
            fill=${colourOf(type.name, catalog, theme)}
          />
          <text class="name" x="14" y="20">${type.name}</text>
          ${type.properties
            .slice(0, LINES_MAX)
            .map(
              (property, at) =>
                html`<text key=${property.name} x="14" y=${38 + at * 15}
                  >${describe(type, property)}</text
                >`,
            )}
          ${
            type.properties.length > LINES_MAX
              ? html`<text x="14" y=${38 + LINES_MAX * 15}
                  >and ${type.properties.length - LINES_MAX} more</text
                >`
              : null
          }
        </g>`,
    )}
  </svg>`;
}
