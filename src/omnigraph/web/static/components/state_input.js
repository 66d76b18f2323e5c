/** A state by its name: a branch or a tag from the list, or a commit, a version or a time. */
import { html, useId } from "../../vendor/preact.js";
import { useGraph } from "../graph_context.js";

export function StateInput({ label, value, onValue }) {
  const { branches } = useGraph();
  const id = useId();
  return html`<label class="row"
    ><span class="label">${label}</span>
    <input
      class="input"
      style=${{ width: "190px" }}
      list=${id}
      value=${value}
      spellcheck=${false}
      onInput=${(event) => onValue(event.target.value)}
    />
    <datalist id=${id}>
      ${branches.map((name) => html`<option key=${name} value=${name} />`)}
    </datalist>
  </label>`;
}
