/** What the canvas draws of explored nodes and edges, in the colours of the theme. */
import { useMemo } from "../../vendor/preact.js";
import { useTheme } from "../components/use_theme.js";
import { colourOf } from "../type_colours.js";

const EDGE_COLOURS = { light: "#aeb8c6", dark: "#56647a" };

export function useDrawn(explored, catalog) {
  const theme = useTheme();
  return useMemo(() => {
    const degrees = new Map();
    for (const { source, target } of explored.edges.values()) {
      for (const key of [source, target]) degrees.set(key, (degrees.get(key) ?? 0) + 1);
    }
    const nodes = [...explored.nodes.values()].map(({ key, type, label }) => ({
      key,
      label,
      colour: colourOf(type, catalog, theme),
      size: Math.min(18, 5 + Math.sqrt(degrees.get(key) ?? 0)),
    }));
    const edges = [...explored.edges.values()].map((edge) => ({
      ...edge,
      colour: EDGE_COLOURS[theme],
    }));
    const types = [...new Set([...explored.nodes.values()].map((node) => node.type))].sort();
    return {
      nodes,
      edges,
      legend: types.map((name) => ({
        name,
        colour: colourOf(name, catalog, theme),
      })),
    };
  }, [explored, catalog, theme]);
}
