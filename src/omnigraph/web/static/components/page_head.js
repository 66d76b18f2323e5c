/** The head of a page: what it is about, and what can be done. */
import { html } from "../../vendor/preact.js";

export function PageHead({ title, sub, children }) {
  return html`<div class="page-head">
    <div>
      <h1>${title}</h1>
      ${sub ? html`<p class="sub">${sub}</p>` : null}
    </div>
    <div class="row">${children}</div>
  </div>`;
}
