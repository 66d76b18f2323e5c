/** What a proposal changes, with what is said about each entity and its properties. */
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { pluralize } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { useDiff } from "../use_diff.js";
import { keyOfChange } from "./change_table.js";
import { DiffOf } from "./diff_view.js";
import { CommentForm, Thread } from "./proposal_threads.js";

const WHOLE = "";

export function ProposalChanges({ proposal, threads, acting, query }) {
  const { api } = useGraph();
  const { number, head_commit_id: head, status, target } = proposal;
  const diff = useDiff(
    (signal) => api.diffProposal(number, {}, signal),
    [api, number, head, status, target],
  );
  // The entity whose comments an address asks for, and those that were opened by hand.
  const asked = { type: query.get("type"), id: query.get("id") };
  const [open, setOpen] = useState(() => new Map());
  const isAsked = (change) => change.id === asked.id && change.type.name === asked.type;
  const threadsOf = (change) =>
    threads.filter(
      ({ about }) => about?.type_name === change.type.name && about.entity_id === change.id,
    );
  const findOpen = (change) =>
    open.get(keyOfChange(change)) ?? (isAsked(change) ? { property: WHOLE } : null);
  const show = (change, state) =>
    setOpen((before) => new Map(before).set(keyOfChange(change), state));
  const notes = {
    at: status === "open" ? { branch: proposal.source } : {},
    tools: (change) =>
      html`<${Tools}
        change=${change}
        threads=${threadsOf(change)}
        isOpen=${Boolean(findOpen(change))}
        onToggle=${() => show(change, findOpen(change) ? false : { property: WHOLE })}
      />`,
    body: (change) => {
      const state = findOpen(change);
      return state
        ? html`<${Notes}
            key=${state.property}
            change=${change}
            threads=${threadsOf(change)}
            property=${state.property}
            proposal=${proposal}
            acting=${acting}
            isAsked=${isAsked(change)}
            onClose=${() => show(change, false)}
          />`
        : null;
    },
    onProperty: (change, property) => show(change, { property }),
  };
  return html`<${DiffOf} diff=${diff} same="It changes nothing." notes=${notes} />`;
}

function Tools({ change, threads, isOpen, onToggle }) {
  const unresolved = threads.filter((thread) => !thread.isResolved).length;
  const count = threads.length === 0 ? "Comment" : pluralize(threads.length, "thread");
  return html`<button
    type="button"
    class=${`button plain small ${unresolved > 0 ? "changed" : ""}`}
    aria-label=${`${count} on ${change.id}`}
    aria-expanded=${isOpen}
    onClick=${onToggle}
  >
    ${count}
  </button>`;
}

function Notes({ change, threads, property, proposal, acting, isAsked, onClose }) {
  const [chosen, setChosen] = useState(property);
  const box = useRef(null);
  useEffect(() => {
    if (isAsked) box.current.scrollIntoView({ block: "center" });
    if (threads.length === 0 || property !== WHOLE) box.current.querySelector("textarea")?.focus();
  }, []);
  const names = Object.keys((change.after ?? change.before).properties);
  const comment = (text) =>
    acting.run("comments", {
      text,
      about: {
        type_name: change.type.name,
        entity_id: change.id,
        ...(chosen === WHOLE ? {} : { property: chosen }),
        side: change.op === "delete" ? "before" : "after",
      },
    });
  return html`<div class="stack notes" ref=${box}>
    ${threads.map(
      (thread) =>
        html`<${Thread}
          key=${thread.number}
          thread=${thread}
          proposal=${proposal}
          acting=${acting}
          isInTable
        />`,
    )}
    <${CommentForm}
      label="Thread"
      button="Begin a thread"
      acting=${acting}
      onSubmit=${comment}
      onCancel=${onClose}
      isPlain
    >
      <label class="row"
        ><span class="label">About</span>
        <select class="select" value=${chosen} onChange=${(event) => setChosen(event.target.value)}>
          <option value=${WHOLE}>${change.type.name} ${change.id}</option>
          ${names.map((name) => html`<option key=${name} value=${name}>its ${name}</option>`)}
        </select></label
      >
    <//>
  </div>`;
}
