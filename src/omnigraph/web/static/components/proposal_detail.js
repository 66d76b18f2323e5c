/** One proposal: what it says, what is said about it, what it changes, and its merge. */
import { html, useState } from "../../vendor/preact.js";
import { formatTime } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { Link, navigate } from "../navigation.js";
import { useAction, useLoad } from "../use_load.js";
import { Empty, Failure, Loaded, Notice } from "./notices.js";
import { PageHead } from "./page_head.js";
import { ProposalChanges } from "./proposal_changes.js";
import { Actor, BranchPair, Moment, ProposalStatus } from "./proposal_labels.js";
import { ProposalMerge } from "./proposal_merge.js";
import { ProposalPanel } from "./proposal_panel.js";
import { CommentForm, groupThreads, Thread } from "./proposal_threads.js";
import { Tabs } from "./tabs.js";

export function ProposalDetail({ number, query }) {
  const { api } = useGraph();
  const [changed, setChanged] = useState(null);
  const read = useLoad(
    (signal) => api.readProposal(number, signal).finally(() => setChanged(null)),
    [api, number],
  );
  const acting = useAction(async (verb, body) => {
    const answer = await api.changeProposal(number, verb, body);
    // A merge answers what it did, and everything else the proposal as it is now.
    if (answer.number === undefined) read.reload();
    else setChanged(answer);
    return answer;
  });
  return html`<div class="content">
    <${Loaded} load=${read}
      >${(data) =>
        html`<${Shown}
          proposal=${changed ?? data}
          query=${query}
          acting=${acting}
          onReload=${read.reload}
        />`}<//
    >
  </div>`;
}

function Shown({ proposal, query, acting, onReload }) {
  const { address } = useGraph();
  const tab = query.get("tab") === "changes" ? "changes" : "talk";
  const threads = groupThreads(proposal.comments);
  const tabs = [
    { name: "talk", title: `Conversation (${proposal.comments.length})` },
    { name: "changes", title: "Changes" },
  ];
  const choose = (name) =>
    navigate(
      address("proposals", [String(proposal.number)], { tab: name === "talk" ? null : name }),
    );
  return html`<${Head} proposal=${proposal} acting=${acting} onReload=${onReload} />
    <${Failure} error=${acting.error} />
    <${Tabs} label="Proposal" tabs=${tabs} chosen=${tab} onChoose=${choose} />
    ${
      tab === "changes"
        ? html`<${ProposalChanges}
            proposal=${proposal}
            threads=${threads}
            acting=${acting}
            query=${query}
          />`
        : html`<div class="with-panel">
            <div class="stack">
              <${Description} proposal=${proposal} acting=${acting} />
              ${threads.map(
                (thread) =>
                  html`<${Thread}
                    key=${thread.number}
                    thread=${thread}
                    proposal=${proposal}
                    acting=${acting}
                  />`,
              )}
              <${CommentForm}
                label="Comment"
                acting=${acting}
                onSubmit=${(text) => acting.run("comments", { text })}
              />
              <${ProposalMerge} proposal=${proposal} acting=${acting} />
            </div>
            <${ProposalPanel} proposal=${proposal} acting=${acting} />
          </div>`
    }`;
}

function Head({ proposal, acting, onReload }) {
  const { address } = useGraph();
  return html`<${PageHead}
      title=${`#${proposal.number} ${proposal.title}`}
      sub=${html`<span class="row">
        <${ProposalStatus} status=${proposal.status} /><${BranchPair} proposal=${proposal} />
        <span>opened by <${Actor} id=${proposal.author_id} /></span>
        <${Moment} at=${proposal.created_at} />
      </span>`}
    >
      <${Link} class="button plain" to=${address("proposals")}>All proposals<//>
      <button class="button" onClick=${onReload} disabled=${acting.isBusy}>Refresh</button>
    <//>
    <${Ending} proposal=${proposal} />`;
}

function Ending({ proposal }) {
  const { address } = useGraph();
  if (proposal.status === "open") return null;
  const by = html`${proposal.ended_by === null ? null : html` by <${Actor} id=${proposal.ended_by} />`}
  ${proposal.ended_at === null ? null : html` on ${formatTime(proposal.ended_at)}`}`;
  if (proposal.status === "closed") {
    return html`<${Notice}>
      <span><strong>Closed</strong>${by}</span>
      ${proposal.reason === null ? null : html`<span>${proposal.reason}</span>`}
    <//>`;
  }
  return html`<${Notice} kind="good">
    <span><strong>Merged into ${proposal.target}</strong>${by}</span>
    <span>
      <${Link} to=${address("commits", [proposal.merge_commit_id])}>Show the commit<//>
    </span>
  <//>`;
}

function Description({ proposal, acting }) {
  const [isEdited, setIsEdited] = useState(false);
  if (isEdited) {
    return html`<${EditForm}
      proposal=${proposal}
      acting=${acting}
      onEnd=${() => setIsEdited(false)}
    />`;
  }
  return html`<section class="card" aria-label="Description">
    <div class="head">
      <h2>Description</h2>
      ${
        proposal.status === "open"
          ? html`<button class="button plain" onClick=${() => setIsEdited(true)}>Edit</button>`
          : null
      }
    </div>
    <div class="body">
      ${
        proposal.body
          ? html`<p class="said">${proposal.body}</p>`
          : html`<${Empty}>Its author has not described it.<//>`
      }
    </div>
  </section>`;
}

function EditForm({ proposal, acting, onEnd }) {
  const [title, setTitle] = useState(proposal.title);
  const [body, setBody] = useState(proposal.body ?? "");
  const submit = async (event) => {
    event.preventDefault();
    const { error } = await acting.run("edit", {
      title: title.trim(),
      ...(body.trim() === "" ? {} : { body: body.trim() }),
    });
    if (error === null) onEnd();
  };
  return html`<form class="card" aria-label="Edit" onSubmit=${submit}>
    <div class="body stack">
      <label class="field"
        ><span class="label">Title</span
        ><input class="input" value=${title} onInput=${(event) => setTitle(event.target.value)}
      /></label>
      <label class="field"
        ><span class="label">Description</span
        ><textarea
          class="input"
          rows="5"
          value=${body}
          onInput=${(event) => setBody(event.target.value)}
        ></textarea>
      </label>
      <div class="row">
        <button class="button primary" disabled=${title.trim() === "" || acting.isBusy}>
          Save
        </button>
        <button type="button" class="button plain" onClick=${onEnd}>Cancel</button>
      </div>
    </div>
  </form>`;
}
