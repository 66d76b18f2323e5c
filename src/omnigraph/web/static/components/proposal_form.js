/** The form that opens a proposal to merge a branch. */
import { html, useState } from "../../vendor/preact.js";
import { MAIN, useGraph } from "../graph_context.js";
import { Link, navigate } from "../navigation.js";
import { useAction } from "../use_load.js";
import { Empty, Failure } from "./notices.js";
import { PageHead } from "./page_head.js";

export function ProposalForm({ query }) {
  const { api, address, branches } = useGraph();
  const first = branches.find((name) => name !== MAIN) ?? null;
  const [source, setSource] = useState(query.get("source"));
  const [target, setTarget] = useState(query.get("target") ?? MAIN);
  const [title, setTitle] = useState("");
  const [body, setBody] = useState("");
  const chosen = source ?? first;
  const opening = useAction(async () => {
    const opened = await api.openProposal({
      source: chosen,
      target,
      title: title.trim(),
      ...(body.trim() === "" ? {} : { body: body.trim() }),
    });
    navigate(address("proposals", [String(opened.number)]));
  });
  const submit = (event) => {
    event.preventDefault();
    opening.run();
  };
  const isReady = title.trim() !== "" && chosen !== null && chosen !== target;
  return html`<div class="content">
    <${PageHead}
      title="Open a proposal"
      sub="What the branch holds now can be discussed, reviewed and merged."
    />
    ${
      chosen === null
        ? html`<${Empty}>
            There is no branch beside main. <${Link} to=${address("branches")}>Create one<//> first.
          <//>`
        : html`<form class="card" aria-label="New proposal" onSubmit=${submit}>
            <div class="body stack">
              <div class="row">
                <${BranchPicker} label="Merge" chosen=${chosen} onChoose=${setSource} />
                <${BranchPicker} label="into" chosen=${target} onChoose=${setTarget} />
                ${chosen === target ? html`<span class="changed">Choose two different branches.</span>` : null}
              </div>
              <label class="field"
                ><span class="label">Title</span
                ><input
                  class="input"
                  value=${title}
                  onInput=${(event) => setTitle(event.target.value)}
              /></label>
              <label class="field"
                ><span class="label">What it changes, and why</span
                ><textarea
                  class="input"
                  rows="5"
                  value=${body}
                  onInput=${(event) => setBody(event.target.value)}
                ></textarea>
              </label>
              <${Failure} error=${opening.error} />
              <div class="row">
                <button class="button primary" disabled=${!isReady || opening.isBusy}>
                  Open the proposal
                </button>
              </div>
            </div>
          </form>`
    }
  </div>`;
}

function BranchPicker({ label, chosen, onChoose }) {
  const { branches } = useGraph();
  const listed = branches.includes(chosen) ? branches : [chosen, ...branches];
  return html`<label class="row"
    ><span class="label">${label}</span>
    <select class="select" value=${chosen} onChange=${(event) => onChoose(event.target.value)}>
      ${listed.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select></label
  >`;
}
