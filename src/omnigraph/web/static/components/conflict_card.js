/** One conflict: the values of the base and of both sides, and what shall count. */
import { html } from "../../vendor/preact.js";
import { formatValue } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { parseTyped } from "../graph_queries.js";
import { listQuestions } from "../merge_decisions.js";
import { EntityLink } from "./entity_link.js";
import { TypeName } from "./type_name.js";
import { Value } from "./value.js";

export const CONFLICT_TITLES = {
  divergent_insert: "added on both sides",
  divergent_update: "changed on both sides",
  delete_vs_update: "removed on one side, changed on the other",
  orphan_edge: "an edge without its node",
  unique_violation: "a value that must be unique is not",
  cardinality_violation: "too many or too few edges",
  value_constraint_violation: "a value that breaks a rule",
  schema_conflict: "the schema was changed differently",
};

export function ConflictCard({ conflict, source, target, decisions, onDecide }) {
  const { catalog } = useGraph();
  const type = catalog.find(conflict.entity_kind, conflict.type_name);
  const questions = listQuestions(conflict);
  return html`<section
    class="card"
    aria-label=${`Conflict: ${conflict.type_name} ${conflict.entity_id ?? ""}`}
  >
    <div class="head">
      <h2 class="row">
        <${TypeName} kind=${conflict.entity_kind} name=${conflict.type_name} />
        ${conflict.entity_id === null ? null : html`<${EntityLink} kind=${conflict.entity_kind} type=${conflict.type_name} id=${conflict.entity_id} />`}
      </h2>
      <span class="badge warn">${CONFLICT_TITLES[conflict.kind] ?? conflict.kind}</span>
    </div>
    <div class="body stack" style=${{ gap: "8px" }}>
      <p class="muted">${conflict.message}</p>
      ${questions.length === 0 ? html`<p>It has to be mended on one of the branches.</p>` : null}
      ${questions.map(
        (question) =>
          html`<${Question}
            key=${question.key}
            question=${question}
            conflict=${conflict}
            property=${type?.properties.find((each) => each.name === question.property) ?? null}
            names=${{ ours: target, theirs: source, base: "where they parted" }}
            decision=${decisions.get(question.key)}
            onDecide=${(decision) => onDecide(question.key, decision)}
          />`,
      )}
    </div>
  </section>`;
}

/** A value as a record has it: integers are numbers there, however long they are. */
function parseDecided(property, text) {
  if (property === null) return text;
  const isInteger = ["int", "bigint"].includes(property.kind) && /^-?\d+$/.test(text.trim());
  return isInteger ? BigInt(text.trim()) : parseTyped(property, text);
}

function Question({ question, conflict, property, names, decision, onDecide }) {
  const { choices, key } = question;
  const values = {
    base: conflict.base,
    ours: conflict.ours,
    theirs: conflict.theirs,
  };
  const show = (side) => {
    const image = values[side];
    if (image === null || image === undefined) return html`<span class="null">not there</span>`;
    return question.property === null
      ? html`<code>${formatValue(image)}</code>`
      : html`<${Value} value=${image[question.property]} />`;
  };
  const choose = (take) =>
    onDecide(take === "value" ? { take, value: null, isIncomplete: true, text: "" } : { take });
  const type = (event) => {
    const text = event.target.value;
    onDecide({
      take: "value",
      value: parseDecided(property, text),
      text,
      isIncomplete: text === "",
    });
  };
  return html`<fieldset style=${{ border: 0, padding: 0, margin: 0 }}>
    <legend class="label">${question.property ?? "The whole entity"}</legend>
    <div class="tiles">
      ${choices.map(
        (choice) =>
          html`<label class="tile" key=${choice} style=${{ cursor: "pointer" }}>
            <span class="check"
              ><input
                type="radio"
                name=${key}
                checked=${decision?.take === choice}
                onChange=${() => choose(choice)}
              />
              <strong
                >${{ ours: "Ours", theirs: "Theirs", base: "Base", value: "Another value", delete: "Delete it" }[choice]}</strong
              >
              <span class="muted small">${names[choice] ?? ""}</span></span
            >
            ${
              choice === "value"
                ? html`<input
                    class="input"
                    aria-label=${`Value of ${question.property}`}
                    value=${decision?.text ?? ""}
                    onFocus=${() => decision?.take !== "value" && choose("value")}
                    onInput=${type}
                  />`
                : choice === "delete"
                  ? null
                  : html`<span>${show(choice)}</span>`
            }
          </label>`,
      )}
    </div>
  </fieldset>`;
}
