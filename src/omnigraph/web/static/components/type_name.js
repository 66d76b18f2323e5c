/** The name of a type with its colour. */
import { html } from "../../vendor/preact.js";
import { useGraph } from "../graph_context.js";
import { colourOf } from "../type_colours.js";
import { useTheme } from "./use_theme.js";

export function TypeDot({ kind, name }) {
  const { catalog } = useGraph();
  const colour = kind === "edge" ? "var(--muted)" : colourOf(name, catalog, useTheme());
  return html`<span class=${`dot ${kind}`} style=${{ "--dot": colour }} aria-hidden="true"></span>`;
}

export function TypeName({ kind, name }) {
  return html`<span class="row" style=${{ display: "inline-flex", flexWrap: "nowrap", gap: "6px" }}>
    <${TypeDot} kind=${kind} name=${name} />${name}
  </span>`;
}
