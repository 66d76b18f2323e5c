/** Which state is shown: the newest of a branch, or a commit of the past. */
import { html } from "../../vendor/preact.js";
import { shortenId } from "../formats.js";
import { MAIN, useGraph, writeState } from "../graph_context.js";
import { buildAddress, navigate, readPlace } from "../navigation.js";

function show(state) {
  const { parts, query } = readPlace();
  const kept = Object.fromEntries(
    [...query].filter(([name]) => name !== "branch" && name !== "at"),
  );
  navigate(buildAddress(parts, { ...kept, ...writeState(state) }));
}

export function StatePicker() {
  const { state, branches } = useGraph();
  const isPast = state.snapshot !== undefined;
  const listed = branches.includes(state.branch) || isPast ? branches : [state.branch, ...branches];
  return html`<label class="hidden-label" for="state">Branch</label>
    <select
      id="state"
      class="select"
      value=${isPast ? "" : state.branch}
      onChange=${(event) => show({ branch: event.target.value })}
    >
      ${isPast ? html`<option value="">at ${shortenId(state.snapshot)}</option>` : null}
      ${listed.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>
    ${
      isPast
        ? html`<span class="badge warn">a state of the past</span>
            <button class="button plain" onClick=${() => show({ branch: MAIN })}>
              Back to now
            </button>`
        : null
    }`;
}
