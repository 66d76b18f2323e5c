/** What a page says beside its data: that it waits, that something failed, that there is none. */
import { html } from "../../vendor/preact.js";

export function Busy({ text = "Loading" }) {
  return html`<p class="busy" role="status">${text}…</p>`;
}

export function Failure({ error }) {
  if (!error) return null;
  return html`<div class="notice bad" role="alert">
    <strong>${error.message}</strong>
    ${error.hint ? html`<span>${error.hint}</span>` : null}
  </div>`;
}

export function Notice({ kind = "", children }) {
  return html`<div class=${`notice ${kind}`} role="status">${children}</div>`;
}

export function Empty({ children }) {
  return html`<div class="empty">${children}</div>`;
}

/** The data of a load as soon as it is there, and until then how it stands. */
export function Loaded({ load, text, children }) {
  if (load.error) return html`<${Failure} error=${load.error} />`;
  if (load.data === null) return html`<${Busy} text=${text} />`;
  return children(load.data);
}
