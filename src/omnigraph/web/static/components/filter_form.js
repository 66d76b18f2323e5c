/** A condition on one property. */
import { html, useState } from "../../vendor/preact.js";
import { listReadable, OPERATORS } from "../graph_queries.js";

export function FilterForm({ type, filter, onFilter }) {
  const properties = listReadable(type).filter((property) => property.kind !== "list");
  const [by, setBy] = useState(filter?.property.name ?? properties[0]?.name ?? "");
  const [is, setIs] = useState(filter?.operator ?? "=");
  const [value, setValue] = useState(filter?.text ?? "");
  const property = properties.find((each) => each.name === by);
  const operators = OPERATORS.filter(
    ({ kinds }) => kinds === null || kinds.includes(property?.kind),
  );
  const operator = operators.some((each) => each.name === is) ? is : "=";
  const isUnary = operator.startsWith("is ");
  if (property === undefined) return null;
  const submit = (event) => {
    event.preventDefault();
    onFilter({ by, is: operator, value: isUnary ? null : value });
  };
  return html`<form class="row" onSubmit=${submit} aria-label="Filter">
    <select
      class="select"
      aria-label="Property"
      value=${by}
      onChange=${(event) => setBy(event.target.value)}
    >
      ${properties.map((each) => html`<option key=${each.name} value=${each.name}>${each.name}</option>`)}
    </select>
    <select
      class="select"
      aria-label="Condition"
      value=${operator}
      onChange=${(event) => setIs(event.target.value)}
    >
      ${operators.map((each) => html`<option key=${each.name} value=${each.name}>${each.title}</option>`)}
    </select>
    ${isUnary ? null : html`<${FilterValue} property=${property} value=${value} onValue=${setValue} />`}
    <button class="button">Filter</button>
    ${filter ? html`<button type="button" class="button plain" onClick=${() => onFilter(null)}>Clear</button>` : null}
  </form>`;
}

function FilterValue({ property, value, onValue }) {
  const words = property.values ?? (property.kind === "bool" ? ["true", "false"] : null);
  if (words === null) {
    return html`<input
      class="input"
      style=${{ width: "220px" }}
      aria-label="Value"
      value=${value}
      onInput=${(event) => onValue(event.target.value)}
    />`;
  }
  return html`<select
    class="select"
    aria-label="Value"
    value=${value}
    onChange=${(event) => onValue(event.target.value)}
  >
    <option value=""></option>
    ${words.map((word) => html`<option key=${word} value=${word}>${word}</option>`)}
  </select>`;
}
