/** Entities that changed, each with the values it got and lost. */
import { html, useState } from "../../vendor/preact.js";
import { formatCount, nameOp } from "../formats.js";
import { EntityLink } from "./entity_link.js";
import { valueOf } from "./entity_history.js";
import { Empty } from "./notices.js";
import { TypeName } from "./type_name.js";
import { Value } from "./value.js";

const AT_ONCE = 200;
const TONES = { insert: "good", update: "warn", delete: "bad" };

/**
 * `notes`, if given, has what is said about the changes: `tools(change)` stands in a column of its
 * own, `body(change)` below the row or is null, and `onProperty(change, name)` begins a new one. `at`
 * is the state in which what was not removed is found.
 */
export function ChangeTable({ changes, notes = null }) {
  const [count, setCount] = useState(AT_ONCE);
  if (changes.length === 0) return html`<div class="body"><${Empty}>No entity changed.<//></div>`;
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Changes">
    <table>
      <thead>
        <tr>
          <th class="fit">What</th>
          <th class="fit">Type</th>
          <th>Entity</th>
          <th>Values</th>
          ${notes === null ? null : html`<th class="fit">Comments</th>`}
        </tr>
      </thead>
      <tbody>
        ${changes
          .slice(0, count)
          .map(
            (change) =>
              html`<${Change} key=${keyOfChange(change)} change=${change} notes=${notes} />`,
          )}
      </tbody>
    </table>
    ${
      changes.length > count
        ? html`<div class="body">
            <button class="button" onClick=${() => setCount(count + AT_ONCE)}>
              Show more of ${formatCount(changes.length)}
            </button>
          </div>`
        : null
    }
  </div>`;
}

export function keyOfChange(change) {
  return `${change.kind} ${change.type.id} ${change.id}`;
}

function Change({ change, notes }) {
  const note = notes?.body(change) ?? null;
  return html`<tr class=${note === null ? null : "noted"}>
      <td class="fit">
        <span class=${`badge ${TONES[change.op]}`}>${nameOp(change.op)}</span>
      </td>
      <td class="fit">
        <${TypeName} kind=${change.kind} name=${change.type.name} />
      </td>
      <td>
        <${EntityLink}
          kind=${change.kind}
          type=${change.type.name}
          id=${change.id}
          at=${change.op === "delete" ? {} : notes?.at}
        /><${Ends} change=${change} />
      </td>
      <td>
        ${listValues(change).map(
          ([name, before, after]) =>
            html`<div key=${name} class="small">
              <${PropertyName} name=${name} change=${change} notes=${notes} />
              ${before === undefined ? null : html`<span class=${change.op === "update" ? "before" : ""}><${Value} value=${before} /></span>`}
              ${change.op === "update" ? " → " : null}
              ${after === undefined ? null : html`<span class=${change.op === "update" ? "after" : ""}><${Value} value=${after} /></span>`}
            </div>`,
        )}
      </td>
      ${notes === null ? null : html`<td class="fit">${notes.tools(change)}</td>`}
    </tr>
    ${
      note === null
        ? null
        : html`<tr class="note">
            <td colspan="5">${note}</td>
          </tr>`
    }`;
}

function PropertyName({ name, change, notes }) {
  const isPlain = !notes?.onProperty || name.startsWith("@");
  if (isPlain) return html`<span class="muted">${name}: </span>`;
  return html`<button
      type="button"
      class="link"
      title=${`Comment on ${name}`}
      onClick=${() => notes.onProperty(change, name)}
    >
      ${name}:</button
    >${" "}`;
}

function Ends({ change }) {
  const ends = (change.after ?? change.before)?.endpoints;
  return ends ? html`<div class="small muted">${ends.from} → ${ends.to}</div>` : null;
}

/** The values of what was added or removed, and of what changed those that differ. */
function listValues(change) {
  const { before, after, op } = change;
  const names = Object.keys((after ?? before).properties);
  const all = (after ?? before).endpoints && op === "update" ? ["@src", "@dst", ...names] : names;
  return all
    .map((name) => [
      name,
      before && (valueOf(before, name) ?? null),
      after && (valueOf(after, name) ?? null),
    ])
    .filter(([, old, now]) =>
      op === "update"
        ? JSON.stringify(old, text) !== JSON.stringify(now, text)
        : (now ?? old ?? null) !== null,
    );
}

function text(_key, value) {
  return typeof value === "bigint" ? String(value) : value;
}
