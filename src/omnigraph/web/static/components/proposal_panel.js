/** Beside a proposal: its reviews and checks, what the policy requires, and what can be done. */
import { html, useState } from "../../vendor/preact.js";
import { shortenId } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { useAction } from "../use_load.js";
import { Notice } from "./notices.js";
import { Actor, Moment } from "./proposal_labels.js";

const VERDICTS = {
  approve: { title: "approves", tone: "good" },
  request_changes: { title: "requests changes", tone: "bad" },
};

export function ProposalPanel({ proposal, acting }) {
  const isOpen = proposal.status === "open";
  return html`<aside class="panel stack" aria-label="Review">
    <${Reviews} proposal=${proposal} />
    ${isOpen && proposal.head_commit_id !== null ? html`<${ReviewForm} proposal=${proposal} acting=${acting} />` : null}
    <${Checks} checks=${proposal.checks} />
    ${isOpen ? html`<${Requirements} unmet=${proposal.unmet} />` : null}
    ${isOpen ? html`<${BranchActions} proposal=${proposal} acting=${acting} />` : null}
  </aside>`;
}

function Reviews({ proposal }) {
  return html`<section class="card" aria-label="Reviews">
    <div class="head">
      <h2>Reviews</h2>
      ${
        proposal.head_commit_id === null
          ? html`<span class="small muted">The branch is gone.</span>`
          : html`<span class="small muted"
              >newest commit${" "}
              <code title=${proposal.head_commit_id}
                >${shortenId(proposal.head_commit_id)}</code
              ></span
            >`
      }
    </div>
    <ul class="list">
      ${proposal.reviews.length === 0 ? html`<li class="muted">There is no review yet.</li>` : null}
      ${proposal.reviews.map((review) => {
        const { title, tone } = VERDICTS[review.verdict];
        return html`<li key=${review.actor_id}>
          <div class="row">
            <${Actor} id=${review.actor_id} />
            <span class=${`badge ${review.stale ? "" : tone}`}>${title}</span>
            ${review.stale ? html`<span class="badge warn">stale</span>` : null}
            <${Moment} at=${review.created_at} />
          </div>
          ${review.text ? html`<p class="said">${review.text}</p>` : null}
          ${review.stale ? html`<p class="small muted">It speaks of <code>${shortenId(review.graph_commit_id)}</code>, or of another target.</p>` : null}
        </li>`;
      })}
    </ul>
  </section>`;
}

/** A review is of the commit that is shown: a later one makes the server refuse it. */
function ReviewForm({ proposal, acting }) {
  const [text, setText] = useState("");
  const review = async (verdict) => {
    const { error } = await acting.run("reviews", {
      verdict,
      head: proposal.head_commit_id,
      ...(text.trim() === "" ? {} : { text: text.trim() }),
    });
    if (error === null) setText("");
  };
  return html`<section class="card" aria-label="Your review">
    <div class="body stack" style=${{ gap: "8px" }}>
      <textarea
        class="input"
        aria-label="Text of the review"
        placeholder="Review"
        rows="2"
        value=${text}
        onInput=${(event) => setText(event.target.value)}
      ></textarea>
      <div class="row">
        <button class="button primary" disabled=${acting.isBusy} onClick=${() => review("approve")}>
          Approve
        </button>
        <button
          class="button"
          disabled=${acting.isBusy || text.trim() === ""}
          title="Say in the text what is to be changed"
          onClick=${() => review("request_changes")}
        >
          Request changes
        </button>
      </div>
    </div>
  </section>`;
}

function Checks({ checks }) {
  return html`<section class="card" aria-label="Checks">
    <div class="head"><h2>Checks</h2></div>
    <ul class="list">
      ${checks.length === 0 ? html`<li class="muted">No check has reported.</li>` : null}
      ${checks.map(
        (check) =>
          html`<li class="row" key=${check.name}>
            <span class=${`badge ${check.stale ? "" : check.outcome === "pass" ? "good" : "bad"}`}
              >${check.outcome}</span
            >
            <${CheckName} check=${check} />
            ${check.stale ? html`<span class="badge warn">stale</span>` : null}
            <${Moment} at=${check.created_at} />
          </li>`,
      )}
    </ul>
  </section>`;
}

/** Only an address of the web becomes a link: a check may report any text. */
function CheckName({ check }) {
  const isLink = /^https?:\/\//.test(check.link ?? "");
  if (!isLink) return html`<span>${check.name} ${check.link ?? ""}</span>`;
  return html`<a href=${check.link} rel="noreferrer noopener" target="_blank">${check.name}</a>`;
}

function Requirements({ unmet }) {
  if (unmet.length === 0) return null;
  return html`<section class="card" aria-label="Missing requirements">
    <div class="head"><h2>What the policy still requires</h2></div>
    <ul class="list">
      ${unmet.map(
        ({ rule, missing }) =>
          html`<li key=${rule}>
            <code>${rule}</code>
            <ul class="bullets">
              ${missing.map((text) => html`<li key=${text}>${text}</li>`)}
            </ul>
          </li>`,
      )}
    </ul>
  </section>`;
}

function BranchActions({ proposal, acting }) {
  const { reload } = useGraph();
  const [reason, setReason] = useState("");
  const [isAsked, setIsAsked] = useState(false);
  const syncing = useAction(async () => {
    const { data, error } = await acting.run("sync", {});
    if (error !== null) throw error;
    reload();
    return data;
  });
  const close = () => acting.run("close", reason.trim() === "" ? {} : { reason: reason.trim() });
  return html`<section class="card" aria-label="Branch">
    <div class="body stack" style=${{ gap: "8px" }}>
      <div class="row">
        <button class="button" disabled=${acting.isBusy} onClick=${syncing.run}>
          Merge ${proposal.target} into ${proposal.source}
        </button>
      </div>
      ${
        syncing.data
          ? html`<${Notice} kind="good"
              >${
                syncing.data.outcome === "already_up_to_date"
                  ? `The branch has everything of ${proposal.target}.`
                  : `The branch has the newest commit of ${proposal.target}.`
              }<//
            >`
          : null
      }
      ${
        isAsked
          ? html`<input
                class="input"
                aria-label="Reason"
                placeholder="Reason"
                value=${reason}
                onInput=${(event) => setReason(event.target.value)}
              />
              <div class="row">
                <button class="button danger" disabled=${acting.isBusy} onClick=${close}>
                  Close without merging
                </button>
                <button class="button plain" onClick=${() => setIsAsked(false)}>
                  Keep it open
                </button>
              </div>`
          : html`<div class="row">
              <button class="button plain" onClick=${() => setIsAsked(true)}>Close</button>
            </div>`
      }
    </div>
  </section>`;
}
