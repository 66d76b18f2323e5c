/** Branches and tags: what there is, and new ones. */
import { html, useState } from "../../vendor/preact.js";
import { Failure, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { formatTime, shortenId } from "../formats.js";
import { MAIN, useGraph } from "../graph_context.js";
import { buildAddress, Link } from "../navigation.js";
import { useAction, useLoad } from "../use_load.js";

export default function BranchesPage() {
  const { api, branches, reload } = useGraph();
  const tags = useLoad((signal) => api.listTags(signal), [api]);
  const removing = useAction(async (name) => {
    await api.deleteBranch(name);
    reload();
  });
  return html`<div class="content">
    <${PageHead}
      title="Branches"
      sub="A branch is a line of commits of its own; a tag keeps a commit for good."
    />
    <${NewBranch} />
    <${Failure} error=${removing.error} />
    <div class="columns">
      <section class="card">
        <div class="head"><h2>Branches</h2></div>
        <ul class="list">
          ${branches.map((name) => html`<${Branch} key=${name} name=${name} onRemove=${() => removing.run(name)} />`)}
        </ul>
      </section>
      <section class="card">
        <div class="head"><h2>Tags</h2></div>
        <${Loaded} load=${tags}
          >${(data) =>
            html`<ul class="list">
              ${data.tags.length === 0 ? html`<li class="muted">There are no tags.</li>` : null}
              ${data.tags.map((tag) => html`<${Tag} key=${tag.name} tag=${tag} />`)}
            </ul>`}<//
        >
      </section>
    </div>
  </div>`;
}

function Branch({ name, onRemove }) {
  const { graph } = useGraph();
  const [isAsked, setIsAsked] = useState(false);
  const to = (page, query) =>
    buildAddress(["graphs", graph, ...(page === "" ? [] : [page])], query);
  return html`<li class="row spread">
    <${Link} to=${to("", { branch: name === MAIN ? null : name })}><strong>${name}</strong><//>
    ${
      name === MAIN
        ? null
        : html`<span class="row">
            <${Link} class="button plain" to=${to("diff", { old: MAIN, new: name })}>Diff<//>
            <${Link} class="button plain" to=${to("merge", { source: name })}>Merge<//>
            <${Link}
              class="button plain"
              to=${buildAddress(["graphs", graph, "proposals", "new"], { source: name })}
              >Propose<//
            >
            ${
              isAsked
                ? html`<button class="button danger" onClick=${onRemove}>Delete ${name}</button>
                    <button class="button plain" onClick=${() => setIsAsked(false)}>
                      Keep it
                    </button>`
                : html`<button class="button plain" onClick=${() => setIsAsked(true)}>
                    Delete
                  </button>`
            }
          </span>`
    }
  </li>`;
}

function Tag({ tag }) {
  const { graph } = useGraph();
  return html`<li class="row spread">
    <${Link} to=${buildAddress(["graphs", graph], { at: tag.graph_commit_id })}
      ><strong>${tag.name}</strong><//
    >
    <span class="muted small"
      >${tag.actor_id ?? ""} ${formatTime(tag.created_at)}
      <code>${shortenId(tag.graph_commit_id)}</code></span
    >
  </li>`;
}

function NewBranch() {
  const { api, state, reload } = useGraph();
  const [name, setName] = useState("");
  const from = state.branch ?? state.snapshot;
  const creating = useAction(async () => {
    await api.createBranch(name.trim(), from);
    setName("");
    reload();
  });
  const submit = (event) => {
    event.preventDefault();
    creating.run();
  };
  return html`<form class="row" onSubmit=${submit} aria-label="New branch">
      <input
        class="input"
        style=${{ width: "220px" }}
        aria-label="Name of the new branch"
        placeholder="New branch"
        value=${name}
        onInput=${(event) => setName(event.target.value)}
      />
      <button class="button primary" disabled=${name.trim() === "" || creating.isBusy}>
        Create from ${state.branch ?? "this state"}
      </button>
    </form>
    <${Failure} error=${creating.error} />`;
}
