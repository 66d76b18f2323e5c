/** The short signs of a proposal: what became of it, its branches, and who did something when. */
import { html } from "../../vendor/preact.js";
import { formatAge, formatTime } from "../formats.js";

const TONES = { open: "accent", merged: "good", closed: "" };

export function ProposalStatus({ status }) {
  return html`<span class=${`badge ${TONES[status] ?? ""}`}>${status}</span>`;
}

export function BranchPair({ proposal }) {
  return html`<span class="row branches">
    <code>${proposal.source}</code>
    <span aria-label="into">→</span>
    <code>${proposal.target}</code>
  </span>`;
}

/** Without a token a server does not know who its callers are. */
export function Actor({ id }) {
  return id === null ? html`<span class="muted">unnamed</span>` : html`<strong>${id}</strong>`;
}

export function Moment({ at }) {
  return html`<time class="small muted" title=${formatTime(at)}>${formatAge(at)}</time>`;
}
