/** The parameters of a query as a form; what is left empty is left out. */
import { html } from "../../vendor/preact.js";

const NUMBERS = new Set(["int", "bigint"]);

/** The values of a form as a request has them: long integers stay texts, so that no digit is lost. */
export function readParameters(params, given) {
  const entries = params.flatMap((param) => {
    const text = given[param.name];
    return text === undefined || text === "" ? [] : [[param.name, parse(param, text)]];
  });
  return Object.fromEntries(entries);
}

function parse(param, text) {
  if (NUMBERS.has(param.kind)) return text.trim();
  if (
    param.kind === "string" ||
    param.kind === "date" ||
    param.kind === "datetime" ||
    param.kind === "blob"
  )
    return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`$${param.name}: this is not a ${param.kind}: ${text}`);
  }
}

function describe(param) {
  const inner = param.item_kind ? ` of ${param.item_kind}` : "";
  return `${param.kind}${inner}${param.nullable ? ", optional" : ""}`;
}

export function ParameterForm({ params, given, onGiven }) {
  return html`<fieldset class="card" style=${{ margin: 0 }}>
    <legend class="hidden-label">Parameters</legend>
    <div class="body tiles">
      ${params.map(
        (param) =>
          html`<div class="field" key=${param.name}>
            <label for=${`param-${param.name}`}
              >$${param.name} <span class="small">${describe(param)}</span></label
            >
            <${Input}
              param=${param}
              value=${given[param.name] ?? ""}
              onValue=${(value) => onGiven({ ...given, [param.name]: value })}
            />
          </div>`,
      )}
    </div>
  </fieldset>`;
}

function Input({ param, value, onValue }) {
  const id = `param-${param.name}`;
  const change = (event) => onValue(event.target.value);
  if (param.kind === "bool") {
    return html`<select id=${id} class="select" value=${value} onChange=${change}>
      <option value=""></option>
      <option value="true">true</option>
      <option value="false">false</option>
    </select>`;
  }
  if (param.kind === "list" || param.kind === "vector" || param.kind === "object") {
    return html`<textarea
      id=${id}
      class="input mono"
      placeholder="[…]"
      value=${value}
      onInput=${change}
    ></textarea>`;
  }
  const hint = { date: "2026-01-31", datetime: "2026-01-31T12:00:00Z" }[param.kind] ?? "";
  return html`<input
    id=${id}
    class="input"
    value=${value}
    placeholder=${hint}
    onInput=${change}
  />`;
}
