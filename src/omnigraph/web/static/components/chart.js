/** A chart of bars or lines, drawn as SVG; the same numbers are a table for who cannot see it. */
import { html } from "../../vendor/preact.js";
import { buildAxis, toNumber } from "../chart_scale.js";
import { formatValue, pluralize } from "../formats.js";

const WIDTH = 480;
const HEIGHT = 260;
const MARGIN = { top: 12, right: 12, bottom: 60, left: 58 };
const POINTS_MAX = 200;
const LABELS_MAX = 12;
const LABEL_LENGTH_MAX = 12;
const TICKS = 5;
const SERIES = 5;
const numbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });

export function Chart({ panel, rows }) {
  const shown = rows.slice(0, POINTS_MAX);
  const series = panel.y.map((name) => shown.map((row) => toNumber(row[name])));
  const axis = buildAxis(series.flat(), TICKS);
  const inner = {
    width: WIDTH - MARGIN.left - MARGIN.right,
    height: HEIGHT - MARGIN.top - MARGIN.bottom,
  };
  const place = {
    // The middle of a row along the axis.
    x: (at) => MARGIN.left + (inner.width * (at + 0.5)) / shown.length,
    y: (value) => MARGIN.top + inner.height * (1 - (value - axis.low) / (axis.high - axis.low)),
    step: inner.width / shown.length,
  };
  const labels = shown.map((row) => formatValue(row[panel.x]));
  return html`<figure class="chart">
    <svg
      viewBox=${`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label=${`${panel.title}: ${panel.y.join(", ")} by ${panel.x}`}
    >
      <${Axes} axis=${axis} place=${place} labels=${labels} />
      ${series.map((values, at) =>
        panel.chart === "bar"
          ? html`<${Bars}
              key=${at}
              index=${at}
              count=${series.length}
              name=${panel.y[at]}
              values=${values}
              labels=${labels}
              place=${place}
            />`
          : html`<${Line}
              key=${at}
              index=${at}
              name=${panel.y[at]}
              values=${values}
              labels=${labels}
              place=${place}
            />`,
      )}
    </svg>
    ${panel.y.length > 1 ? html`<${Legend} names=${panel.y} />` : null}
    ${
      rows.length > POINTS_MAX
        ? html`<figcaption class="small muted">
            The first ${POINTS_MAX} of ${pluralize(rows.length, "row")} are drawn.
          </figcaption>`
        : null
    }
    <${HiddenTable} panel=${panel} rows=${shown} />
  </figure>`;
}

function Axes({ axis, place, labels }) {
  const every = Math.ceil(labels.length / LABELS_MAX);
  const shorten = (text) =>
    text.length > LABEL_LENGTH_MAX ? `${text.slice(0, LABEL_LENGTH_MAX - 1)}…` : text;
  return html`<g class="axes">
    ${axis.ticks.map(
      (tick) =>
        html`<g key=${tick}>
          <line
            class=${tick === 0 ? "zero" : null}
            x1=${MARGIN.left}
            x2=${WIDTH - MARGIN.right}
            y1=${place.y(tick)}
            y2=${place.y(tick)}
          />
          <text class="tick" x=${MARGIN.left - 8} y=${place.y(tick)}>${numbers.format(tick)}</text>
        </g>`,
    )}
    ${labels.map((text, at) =>
      at % every === 0
        ? html`<text
            key=${at}
            class="label"
            transform=${`translate(${place.x(at)} ${HEIGHT - MARGIN.bottom + 16})${labels.length > 6 ? " rotate(-30)" : ""}`}
            text-anchor=${labels.length > 6 ? "end" : "middle"}
          >
            ${shorten(text)}
          </text>`
        : null,
    )}
  </g>`;
}

function describePoint(label, name, value) {
  return `${label}: ${name} ${value === null ? "null" : numbers.format(value)}`;
}

function Bars({ index, count, name, values, labels, place }) {
  const width = Math.max((place.step * 0.72) / count, 1);
  return html`<g class=${`series series-${index % SERIES}`}>
    ${values.map((value, at) =>
      value === null
        ? null
        : html`<rect
            key=${at}
            x=${place.x(at) - (width * count) / 2 + width * index}
            y=${Math.min(place.y(value), place.y(0))}
            width=${width}
            height=${Math.abs(place.y(value) - place.y(0))}
          >
            <title>${describePoint(labels[at], name, value)}</title>
          </rect>`,
    )}
  </g>`;
}

/** A null ends a line: what is not known is not drawn as if it were. */
function Line({ index, name, values, labels, place }) {
  const path = values
    .map((value, at) => {
      if (value === null) return "";
      const verb = at === 0 || values[at - 1] === null ? "M" : "L";
      return `${verb}${place.x(at).toFixed(1)} ${place.y(value).toFixed(1)}`;
    })
    .join("");
  return html`<g class=${`series line series-${index % SERIES}`}>
    <path d=${path} />
    ${values.map((value, at) =>
      value === null
        ? null
        : html`<circle key=${at} cx=${place.x(at)} cy=${place.y(value)} r="3">
            <title>${describePoint(labels[at], name, value)}</title>
          </circle>`,
    )}
  </g>`;
}

function Legend({ names }) {
  return html`<div class="row small">
    ${names.map(
      (name, at) =>
        html`<span key=${name} class="row" style=${{ gap: "4px" }}>
          <span class=${`swatch series-${at % SERIES}`} aria-hidden="true"></span>${name}
        </span>`,
    )}
  </div>`;
}

function HiddenTable({ panel, rows }) {
  const names = [panel.x, ...panel.y];
  return html`<div class="hidden-label">
    <table>
      <caption>
        ${panel.title}
      </caption>
      <thead>
        <tr>
          ${names.map((name) => html`<th key=${name} scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row, at) =>
            html`<tr key=${at}>
              ${names.map((name) => html`<td key=${name}>${formatValue(row[name])}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
