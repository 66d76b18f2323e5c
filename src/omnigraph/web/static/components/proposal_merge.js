/** The merge of a proposal: its conflicts, and the button that merges the commit that is shown. */
import { html, useState } from "../../vendor/preact.js";
import { formatCount, pluralize } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { Link } from "../navigation.js";
import { useLoad } from "../use_load.js";
import { CONFLICT_TITLES } from "./conflict_card.js";
import { DataTable } from "./data_table.js";
import { EntityLink } from "./entity_link.js";
import { Loaded, Notice } from "./notices.js";
import { TypeName } from "./type_name.js";
import { Value } from "./value.js";

export function ProposalMerge({ proposal, acting }) {
  if (proposal.status === "merged") return html`<${MergedCounts} changes=${proposal.changes} />`;
  if (proposal.status !== "open" || proposal.head_commit_id === null) return null;
  return html`<${OpenMerge} proposal=${proposal} acting=${acting} />`;
}

function OpenMerge({ proposal, acting }) {
  const { api, reload } = useGraph();
  const [isEnded, setIsEnded] = useState(false);
  const [message, setMessage] = useState("");
  const plan = useLoad(
    (signal) => api.planProposal(proposal.number, signal),
    [api, proposal.number, proposal.head_commit_id, proposal.target, proposal.updated_at],
  );
  const merge = async (event) => {
    event.preventDefault();
    const { error } = await acting.run("merge", {
      head: proposal.head_commit_id,
      delete_branch: isEnded,
      ...(message.trim() === "" ? {} : { message: message.trim() }),
    });
    if (error === null) reload();
  };
  return html`<${Loaded} load=${plan} text="Planning the merge"
    >${(data) =>
      html`<section class="card" aria-label="Merge">
        <div class="head">
          <h2>Merge</h2>
          <span class=${`badge ${data.conflict_count === 0 ? "good" : "bad"}`}
            >${data.conflict_count === 0 ? "no conflicts" : pluralize(data.conflict_count, "conflict")}</span
          >
        </div>
        ${
          data.conflict_count > 0
            ? html`<${Conflicts} proposal=${proposal} plan=${data} />`
            : html`<form class="body row" onSubmit=${merge}>
                <input
                  class="input grow"
                  aria-label="Message of the merge"
                  placeholder=${`Merge proposal ${proposal.number}: ${proposal.title}`}
                  value=${message}
                  onInput=${(event) => setMessage(event.target.value)}
                />
                <label class="check"
                  ><input
                    type="checkbox"
                    checked=${isEnded}
                    onChange=${(event) => setIsEnded(event.target.checked)}
                  />
                  Delete the branch afterwards</label
                >
                <button class="button primary" disabled=${acting.isBusy}>
                  Merge into ${proposal.target}
                </button>
              </form>`
        }
      </section>`}<//
  >`;
}

/** A merge of a proposal decides nothing: its conflicts end when the branch has the target. */
function Conflicts({ proposal, plan }) {
  const { address } = useGraph();
  const hidden = plan.conflict_count - plan.merge_conflicts.length;
  const to = address("merge", [], { source: proposal.target, target: proposal.source });
  return html`<div class="body stack">
    <${Notice} kind="warn">
      <span
        >A proposal is merged without conflicts only. Change the branch, or ${" "}<${Link} to=${to}
          >decide them while ${proposal.target} is merged into it<//
        >: the reviews are stale afterwards.</span
      >
    <//>
    ${plan.merge_conflicts.map(
      (conflict) =>
        html`<${Conflict}
          key=${`${conflict.type_name} ${conflict.entity_id} ${conflict.kind}`}
          conflict=${conflict}
          proposal=${proposal}
        />`,
    )}
    ${hidden > 0 ? html`<p class="muted">${formatCount(hidden)} further conflicts are not shown.</p>` : null}
  </div>`;
}

function Conflict({ conflict, proposal }) {
  const label = `Conflict: ${conflict.type_name} ${conflict.entity_id ?? ""}`;
  const rows = (conflict.properties ?? []).map((property) => ({ property }));
  const column = (name, title) => ({
    name,
    title,
    cell: ({ property }) => {
      const image = conflict[name];
      return image
        ? html`<${Value} value=${image[property]} />`
        : html`<span class="null">not there</span>`;
    },
  });
  const columns = [
    { name: "property", isFit: true },
    column("base", "where they parted"),
    column("ours", proposal.target),
    column("theirs", proposal.source),
  ];
  return html`<section class="card" aria-label=${label}>
    <div class="head">
      <h3 class="row">
        <${TypeName} kind=${conflict.entity_kind} name=${conflict.type_name} />
        ${conflict.entity_id === null ? null : html`<${EntityLink} kind=${conflict.entity_kind} type=${conflict.type_name} id=${conflict.entity_id} />`}
      </h3>
      <span class="badge warn">${CONFLICT_TITLES[conflict.kind] ?? conflict.kind}</span>
    </div>
    <p class="body muted">${conflict.message}</p>
    ${rows.length === 0 ? null : html`<${DataTable} label=${`Values of ${label}`} columns=${columns} rows=${rows} />`}
  </section>`;
}

function MergedCounts({ changes }) {
  if (changes.length === 0) return null;
  return html`<section class="card" aria-label="What was merged">
    <div class="head"><h2>What was merged</h2></div>
    <ul class="list">
      ${changes.map((each) => {
        const [kind, name] = each.type.split(":");
        return html`<li class="row" key=${each.type}>
          <${TypeName} kind=${kind} name=${name} />
          <span class="added">+${formatCount(each.inserted)}</span>
          <span class="changed">~${formatCount(each.updated)}</span>
          <span class="removed">−${formatCount(each.deleted)}</span>
        </li>`;
      })}
    </ul>
  </section>`;
}
