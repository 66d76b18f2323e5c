/** What is said about a proposal: threads, of which those about an entity can be resolved. */
import { html, useState } from "../../vendor/preact.js";
import { useGraph } from "../graph_context.js";
import { Link } from "../navigation.js";
import { Actor, Moment } from "./proposal_labels.js";

/** The comments by thread, in the order in which the threads began. */
export function groupThreads(comments) {
  const threads = new Map();
  for (const comment of comments) {
    const found = threads.get(comment.thread);
    if (found === undefined) {
      threads.set(comment.thread, {
        number: comment.thread,
        about: comment.about,
        isResolved: comment.resolved,
        comments: [comment],
      });
    } else found.comments.push(comment);
  }
  return [...threads.values()];
}

export function nameAnchor(about) {
  const property = about.property === null ? "" : `.${about.property}`;
  return `${about.type_name} ${about.entity_id}${property}`;
}

export function Thread({ thread, proposal, acting, isInTable = false }) {
  const [isReplying, setIsReplying] = useState(false);
  const { about, isResolved } = thread;
  const title = about === null ? `Comment ${thread.number}` : `Thread about ${nameAnchor(about)}`;
  const reply = async (text) => {
    const { error } = await acting.run("comments", { text, replies_to: thread.number });
    if (error === null) setIsReplying(false);
  };
  const resolve = () => acting.run("comments", { resolves: thread.number });
  return html`<section class="card thread" aria-label=${title}>
    ${
      about === null
        ? null
        : html`<div class="head">
            <${AnchorTitle} about=${about} proposal=${proposal} isInTable=${isInTable} />
            <span class=${`badge ${isResolved ? "good" : "warn"}`}
              >${isResolved ? "resolved" : "to be resolved"}</span
            >
          </div>`
    }
    <ul class="list">
      ${thread.comments.map((comment) => html`<${Comment} key=${comment.number} comment=${comment} />`)}
    </ul>
    <div class="body">
      ${
        isReplying
          ? html`<${CommentForm}
              label="Reply"
              acting=${acting}
              onSubmit=${reply}
              onCancel=${() => setIsReplying(false)}
              isPlain
            />`
          : html`<div class="row">
              <button class="button plain" onClick=${() => setIsReplying(true)}>Reply</button>
              ${
                about === null || isResolved
                  ? null
                  : html`<button class="button plain" disabled=${acting.isBusy} onClick=${resolve}>
                      Resolve
                    </button>`
              }
            </div>`
      }
    </div>
  </section>`;
}

function AnchorTitle({ about, proposal, isInTable }) {
  const { address } = useGraph();
  const text = html`<code>${nameAnchor(about)}</code>
    ${about.side ? `${about.side} the change` : ""}`;
  if (isInTable) return html`<h3>${text}</h3>`;
  const to = address("proposals", [String(proposal.number)], {
    tab: "changes",
    type: about.type_name,
    id: about.entity_id,
  });
  return html`<h3><${Link} to=${to}>${text}<//></h3>`;
}

function Comment({ comment }) {
  return html`<li id=${`comment-${comment.number}`}>
    <div class="row">
      <${Actor} id=${comment.actor_id} /><${Moment} at=${comment.created_at} />
      <span class="small muted">${comment.number}</span>
    </div>
    <p class="said">${comment.text}</p>
  </li>`;
}

/** `isPlain` leaves the card out, for a form that stands in one; `button` is what it does. */
export function CommentForm({
  label,
  button = label,
  acting,
  onSubmit,
  onCancel,
  isPlain = false,
  children,
}) {
  const [text, setText] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    await onSubmit(text.trim());
    setText("");
  };
  const sendByKey = (event) => {
    const isSending = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (isSending && text.trim() !== "") submit(event);
  };
  return html`<form class=${isPlain ? null : "card"} aria-label=${label} onSubmit=${submit}>
    <div class=${`stack ${isPlain ? "" : "body"}`} style=${{ gap: "8px" }}>
      ${children}
      <textarea
        class="input"
        aria-label=${`Text of the ${label.toLowerCase()}`}
        placeholder=${label}
        rows="3"
        value=${text}
        onInput=${(event) => setText(event.target.value)}
        onKeyDown=${sendByKey}
      ></textarea>
      <div class="row">
        <button class="button" disabled=${text.trim() === "" || acting.isBusy}>${button}</button>
        ${onCancel ? html`<button type="button" class="button plain" onClick=${onCancel}>Cancel</button>` : null}
      </div>
    </div>
  </form>`;
}
