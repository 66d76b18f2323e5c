/** A value of a property or a column. */
import { html } from "../../vendor/preact.js";
import { formatValue } from "../formats.js";

const LENGTH_MAX = 2_000;
const ITEMS_MAX = 16;

export function Value({ value }) {
  if (value === null || value === undefined) return html`<span class="null">null</span>`;
  const isPlainList = Array.isArray(value) && value.every((each) => typeof each !== "object");
  if (isPlainList)
    return html`<span class="row" style=${{ display: "inline-flex", gap: "4px" }}>
      ${value.slice(0, ITEMS_MAX).map((each, at) => html`<span class="badge" key=${at}>${String(each)}</span>`)}
      ${value.length > ITEMS_MAX ? html`<span class="muted">and ${value.length - ITEMS_MAX} more</span>` : null}
    </span>`;
  const text = formatValue(value);
  const shown = text.length > LENGTH_MAX ? `${text.slice(0, LENGTH_MAX)}…` : text;
  return typeof value === "object" ? html`<code>${shown}</code>` : shown;
}
