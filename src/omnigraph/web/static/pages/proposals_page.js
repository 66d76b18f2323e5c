/** Proposals: the list, one of them by its number, and the form that opens one. */
import { html } from "../../vendor/preact.js";
import { Empty, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { ProposalDetail } from "../components/proposal_detail.js";
import { ProposalForm } from "../components/proposal_form.js";
import { BranchPair, ProposalStatus } from "../components/proposal_labels.js";
import { formatAge, formatTime } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { Icon } from "../icons.js";
import { Link } from "../navigation.js";
import { useLoad } from "../use_load.js";

const NEW = "new";
const STATES = [
  { name: "open", title: "Open", status: "open" },
  { name: "merged", title: "Merged", status: "merged" },
  { name: "closed", title: "Closed", status: "closed" },
  { name: "all", title: "All", status: null },
];

export default function ProposalsPage({ parts: [name], query }) {
  const key = `${name} ${query.get("source")}`;
  if (name === undefined) return html`<${ProposalList} query=${query} />`;
  if (name === NEW) return html`<${ProposalForm} key=${key} query=${query} />`;
  if (/^\d{1,15}$/.test(name)) {
    return html`<${ProposalDetail} key=${name} number=${Number(name)} query=${query} />`;
  }
  return html`<div class="content"><h1>There is no such proposal</h1></div>`;
}

function ProposalList({ query }) {
  const { api, address } = useGraph();
  const asked = query.get("state") ?? "open";
  const chosen = STATES.find((each) => each.name === asked) ?? STATES[0];
  const found = useLoad((signal) => api.listProposals(chosen.status, signal), [api, chosen.name]);
  return html`<div class="content">
    <${PageHead} title="Proposals" sub="A proposal asks to merge a branch, after a review.">
      <${Link} class="button primary" to=${address("proposals", [NEW])}>
        <${Icon} name="plus" />Open a proposal
      <//>
    <//>
    <nav class="row" aria-label="State">
      ${STATES.map(
        (each) =>
          html`<${Link}
            key=${each.name}
            class=${`button ${each === chosen ? "chosen" : "plain"}`}
            aria-current=${each === chosen ? "true" : null}
            to=${address("proposals", [], { state: each.name === "open" ? null : each.name })}
          >
            ${each.title}
          <//>`,
      )}
    </nav>
    <${Loaded} load=${found}
      >${({ proposals }) =>
        proposals.length === 0
          ? html`<${Empty}>
              ${chosen.status === null ? "There is no proposal." : `No proposal is ${chosen.name}.`}
            <//>`
          : html`<section class="card" aria-label=${`${chosen.title} proposals`}>
              <ul class="list">
                ${proposals.map((each) => html`<${Entry} key=${each.number} proposal=${each} />`)}
              </ul>
            </section>`}<//
    >
  </div>`;
}

function Entry({ proposal }) {
  const { address } = useGraph();
  return html`<li class="row spread">
    <span class="row">
      <${ProposalStatus} status=${proposal.status} />
      <span class="muted">#${proposal.number}</span>
      <${Link} to=${address("proposals", [String(proposal.number)])}
        ><strong>${proposal.title}</strong><//
      >
    </span>
    <span class="row small muted">
      <${BranchPair} proposal=${proposal} />
      ${proposal.author_id === null ? null : html`<span>by ${proposal.author_id}</span>`}
      <time title=${formatTime(proposal.updated_at)}>${formatAge(proposal.updated_at)}</time>
    </span>
  </li>`;
}
