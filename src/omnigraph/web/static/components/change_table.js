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

export function ChangeTable({ changes }) {
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
        </tr>
      </thead>
      <tbody>
        ${changes.slice(0, count).map(
          (change) =>
            html`<tr key=${`${change.kind} ${change.type.id} ${change.id}`}>
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
                /><${Ends} change=${change} />
              </td>
              <td>
                ${listValues(change).map(
                  ([name, before, after]) =>
                    html`<div key=${name} class="small">
                      <span class="muted">${name}: </span>
                      ${before === undefined ? null : html`<span class=${change.op === "update" ? "before" : ""}><${Value} value=${before} /></span>`}
                      ${change.op === "update" ? " → " : null}
                      ${after === undefined ? null : html`<span class=${change.op === "update" ? "after" : ""}><${Value} value=${after} /></span>`}
                    </div>`,
                )}
              </td>
            </tr>`,
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
        : (now ?? old) !== null,
    );
}

function text(_key, value) {
  return typeof value === "bigint" ? String(value) : value;
}
