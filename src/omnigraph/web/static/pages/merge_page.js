/** A merge: what it would do, its conflicts, what is decided about them, and the merge itself. */
import { html, useState } from "../../vendor/preact.js";
import { CommitLine } from "../components/commit_line.js";
import { ConflictCard } from "../components/conflict_card.js";
import { Empty, Failure, Loaded, Notice } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { TypeName } from "../components/type_name.js";
import { formatCount, pluralize } from "../formats.js";
import { MAIN, useGraph } from "../graph_context.js";
import { countOpen, keyOfConflict, writeResolution } from "../merge_decisions.js";
import { buildAddress, Link, navigate, readPlace } from "../navigation.js";
import { useAction, useLoad } from "../use_load.js";

const OUTCOMES = {
  already_up_to_date: "The target has everything of the source already.",
  fast_forward: "The target has not changed since: it becomes what the source is.",
  merged: "Both sides changed: their changes are joined in one commit.",
};

export default function MergePage({ query }) {
  const { branches } = useGraph();
  const source = query.get("source") ?? branches.find((name) => name !== MAIN) ?? null;
  const target = query.get("target") ?? MAIN;
  const choose = (changes) => {
    const { parts, query: now } = readPlace();
    navigate(
      buildAddress(parts, {
        ...Object.fromEntries(now),
        source,
        target,
        ...changes,
      }),
    );
  };
  const picker = (label, chosen, onChoose) =>
    html`<label class="row"
      ><span class="label">${label}</span>
      <select class="select" value=${chosen} onChange=${(event) => onChoose(event.target.value)}>
        ${branches.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select></label
    >`;
  return html`<div class="content">
    <${PageHead} title="Merge" sub="Nothing is written before you merge.">
      ${
        source === null
          ? null
          : html`${picker("Take", source, (name) => choose({ source: name }))}
            ${picker("into", target, (name) => choose({ target: name }))}`
      }
    <//>
    ${source === null ? html`<${Empty}>There is no branch beside main.<//>` : null}
    ${source !== null && source === target ? html`<${Empty}>Choose two different branches.<//>` : null}
    ${
      source !== null && source !== target
        ? html`<${MergePlan} key=${`${source} ${target}`} source=${source} target=${target} />`
        : null
    }
  </div>`;
}

function MergePlan({ source, target }) {
  const { api, reload } = useGraph();
  const plan = useLoad(
    (signal) => api.planMerge({ source, target }, signal),
    [api, source, target],
  );
  const [decisions, setDecisions] = useState(() => new Map());
  const [message, setMessage] = useState("");
  const [isEnded, setIsEnded] = useState(false);
  const decide = (key, decision) =>
    setDecisions((before) => {
      const next = new Map(before);
      if (decision === null) next.delete(key);
      else next.set(key, decision);
      return next;
    });
  const merging = useAction(async (conflicts) => {
    const resolve = writeResolution(conflicts, decisions);
    const result = await api.merge({
      source,
      target,
      delete_branch: isEnded,
      ...(message.trim() === "" ? {} : { message: message.trim() }),
      ...(resolve.length === 0 ? {} : { resolve }),
    });
    reload();
    return result;
  });
  if (merging.data) return html`<${Merged} result=${merging.data} />`;
  return html`<${Loaded} load=${plan} text="Planning"
    >${(data) => {
      const conflicts = data.merge_conflicts;
      const hidden = data.conflict_count - conflicts.length;
      const open = countOpen(conflicts, decisions) + hidden;
      return html`<div class="stack">
        <${Notice} kind=${conflicts.length === 0 ? "good" : "warn"}>
          <strong
            >${conflicts.length === 0 ? "No conflicts" : pluralize(data.conflict_count, "conflict")}</strong
          >
          <span>${OUTCOMES[data.outcome] ?? data.outcome}</span>
          ${(data.warnings ?? []).map((text) => html`<span key=${text}>${text}</span>`)}
        <//>
        <${Changes} changes=${data.changes} source=${source} target=${target} />
        ${conflicts.map(
          (conflict) =>
            html`<${ConflictCard}
              key=${keyOfConflict(conflict)}
              conflict=${conflict}
              source=${source}
              target=${target}
              decisions=${decisions}
              onDecide=${decide}
            />`,
        )}
        ${
          hidden > 0
            ? html`<${Notice} kind="warn"
                >${formatCount(hidden)} further conflicts are not shown. The command line lists all
                of them.<//
              >`
            : null
        }
        <${Failure} error=${merging.error} />
        ${
          data.outcome === "already_up_to_date"
            ? null
            : html`<form
                class="card"
                aria-label="Merge"
                onSubmit=${(event) => {
                  event.preventDefault();
                  merging.run(conflicts);
                }}
              >
                <div class="body row">
                  <input
                    class="input grow"
                    aria-label="Message"
                    placeholder="Message"
                    value=${message}
                    onInput=${(event) => setMessage(event.target.value)}
                  />
                  <label class="check"
                    ><input
                      type="checkbox"
                      checked=${isEnded}
                      disabled=${source === MAIN}
                      onChange=${(event) => setIsEnded(event.target.checked)}
                    />
                    Delete ${source} afterwards</label
                  >
                  <button class="button primary" disabled=${open > 0 || merging.isBusy}>
                    ${open > 0 ? `${pluralize(open, "decision")} left` : `Merge into ${target}`}
                  </button>
                </div>
              </form>`
        }
      </div>`;
    }}<//
  >`;
}

function Changes({ changes, source, target }) {
  const { graph } = useGraph();
  if (changes.length === 0) return null;
  return html`<section class="card">
    <div class="head">
      <h2>What changes in ${target}</h2>
      <${Link}
        class="button plain"
        to=${buildAddress(["graphs", graph, "diff"], { old: target, new: source })}
        >Show the diff<//
      >
    </div>
    <ul class="list">
      ${changes.map(
        (each) =>
          html`<li class="row" key=${`${each.entity_kind} ${each.type_name}`}>
            <${TypeName} kind=${each.entity_kind} name=${each.type_name} />
            <span class="added">+${formatCount(each.inserted)}</span>
            <span class="changed">~${formatCount(each.updated)}</span>
            <span class="removed">−${formatCount(each.deleted)}</span>
          </li>`,
      )}
    </ul>
  </section>`;
}

function Merged({ result }) {
  const { graph } = useGraph();
  return html`<${Notice} kind="good">
    <strong>${result.source} was merged into ${result.target}</strong>
    ${result.commit ? html`<${CommitLine} commit=${result.commit} />` : null}
    ${result.branch_delete_error ? html`<span>${result.branch_delete_error}</span>` : null}
    ${result.commit ? html`<span><${Link} to=${buildAddress(["graphs", graph, "commits", result.commit.graph_commit_id])}>Show the commit<//></span>` : null}
  <//>`;
}
