/** What all pages of a graph share: its routes, the state that is shown, and its types. */
import { createContext, useContext } from "../vendor/preact.js";
import { buildAddress } from "./navigation.js";

export const GraphContext = createContext(null);

export function useGraph() {
  return useContext(GraphContext);
}

export const MAIN = "main";

/** The state that an address asks for, as requests name it. */
export function readState(query) {
  const snapshot = query.get("at");
  return snapshot === null ? { branch: query.get("branch") ?? MAIN } : { snapshot };
}

/** How a state stands in an address; that of main is left out. */
export function writeState(state) {
  if (state.snapshot !== undefined) return { at: state.snapshot };
  return { branch: state.branch === MAIN ? null : state.branch };
}

/** Makes addresses of pages of a graph that keep its state. */
export function createAddresses(graph, state) {
  return (page, parts = [], query = {}) =>
    buildAddress(["graphs", graph, ...(page === "" ? [] : [page]), ...parts], {
      ...writeState(state),
      ...query,
    });
}

/** The types of a graph, with the questions that pages ask about them. */
export class TypeCatalog {
  constructor(types) {
    this.types = types;
    this.nodes = types.filter((type) => type.kind === "node");
    this.edges = types.filter((type) => type.kind === "edge");
  }

  find(kind, name) {
    return this.types.find((type) => type.kind === kind && type.name === name) ?? null;
  }

  /**
   * The edge types with an end of a node type, and the direction as that end sees it. Those whose
   * other end may not be read are left out.
   */
  listEdgesOf(nodeType) {
    const found = this.edges.flatMap((edge) => [
      ...(edge.source === nodeType ? [{ edge, direction: "out", other: edge.target }] : []),
      ...(edge.target === nodeType ? [{ edge, direction: "in", other: edge.source }] : []),
    ]);
    return found.filter(({ other }) => this.find("node", other) !== null);
  }
}
