/** One colour for each type, the same on every page; edges and nodes draw from one list. */
const LIGHT = [
  "#3f6fd8",
  "#b8560f",
  "#2c8a57",
  "#a63f8f",
  "#7a5cd0",
  "#0f8296",
  "#b63d4c",
  "#6e7a12",
  "#8a5a3c",
  "#5b6b82",
];
const DARK = [
  "#7fa2ff",
  "#f0a061",
  "#6fcf97",
  "#e28ccf",
  "#b59cff",
  "#5cc8dc",
  "#f48a97",
  "#c3cf5a",
  "#d3a27f",
  "#a8b6ca",
];

function hash(name) {
  let value = 7;
  for (let at = 0; at < name.length; at += 1) value = (value * 31 + name.charCodeAt(at)) >>> 0;
  return value;
}

/** Types of one graph get colours in turn, so that few types never share one. */
export function colourOf(name, catalog, theme) {
  const colours = theme === "dark" ? DARK : LIGHT;
  const at = catalog?.nodes.findIndex((type) => type.name === name) ?? -1;
  return colours[(at >= 0 ? at : hash(name)) % colours.length];
}
