/** Pictures of 16 units, drawn with lines in the colour of the text. */
import { html } from "../vendor/preact.js";

const PATHS = {
  overview: "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3",
  query: "M2 4l4 4-4 4M8 12h6",
  explore:
    "M4 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM12 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM5 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM6 5l4 1.500M11 9l-4 2.500M4 6l.8 4",
  commits: "M8 2v4M8 10v4M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  branches:
    "M4 5a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4 14a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM12 6a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4 5v6M12 6c0 3-4 3-8 4",
  diff: "M5 2v6M2 5h6M9 12h5M13 2 3 14",
  merge:
    "M4 5a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4 14a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM12 10a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4 5v6M4 5c1 3 4 3.500 6.500 3.500",
  proposals: "M2 3h12v8H7l-3 3v-3H2zM5 6h6M5 8.500h4",
  dashboards: "M2 14h12M4 14V8M8 14V3M12 14v-4",
  schema: "M2 2h5v4H2zM9 10h5v4H9zM4.500 6v6H9",
  stored: "M3 2h10v12H3zM6 5h4M6 8h4M6 11h2",
  upkeep: "M8 5v3l2 2M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z",
  pipelines: "M2 4h4v3H2zM10 9h4v3h-4zM6 5.500h3.500v5H10",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500z",
  keyboard: "M1.500 4h13v8h-13zM4 6.500h.01M6.500 6.500h.01M9 6.500h.01M11.500 6.500h.01M5 9.500h6",
  leave: "M6 2H3v12h3M7 8h7M11 5l3 3-3 3",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4",
  play: "M4 3l9 5-9 5z",
};

export function Icon({ name }) {
  return html`<svg
    width="16"
    height="16"
    viewBox="0 0 16 16"
    aria-hidden="true"
    fill="none"
    stroke="currentColor"
    stroke-width="1.4"
    stroke-linecap="round"
    stroke-linejoin="round"
  >
    <path d=${PATHS[name]} />
  </svg>`;
}
