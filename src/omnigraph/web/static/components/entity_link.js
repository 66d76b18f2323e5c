/** An entity by its label, which leads to its page. */
import { html } from "../../vendor/preact.js";
import { useGraph } from "../graph_context.js";
import { findLabel } from "../graph_queries.js";
import { Link } from "../navigation.js";

/** `at` is the state to show it in, as an address has it; the one of the page without it. */
export function EntityLink({ kind = "node", type, id, label, at = {} }) {
  const { address } = useGraph();
  return html`<${Link} to=${address("entities", [kind, type, id], at)}>${label ?? id}<//>`;
}

/** What people call an entity: its label, and its id where that says something else. */
export function labelOf(type, object) {
  const property = type === null ? null : findLabel(type);
  const label = property === null ? null : object[property.name];
  return label === null || label === undefined || label === "" ? object["@id"] : String(label);
}
