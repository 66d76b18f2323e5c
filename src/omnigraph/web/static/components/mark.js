/** The mark of Omnigraph. */
import { html } from "../../vendor/preact.js";

export function Mark() {
  return html`<svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true" class="mark">
    <path d="M9 22 16 8l7 14z" fill="none" stroke="currentColor" stroke-width="2.500" />
    <circle cx="16" cy="8" r="4.500" fill="currentColor" />
    <circle cx="9" cy="22" r="4.500" fill="currentColor" />
    <circle cx="23" cy="22" r="4.500" fill="currentColor" />
  </svg>`;
}
