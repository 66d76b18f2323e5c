/** JSON with colours; nothing of it is ever taken for markup. */
import { html } from "../../vendor/preact.js";
import { stringify } from "../formats.js";

const TOKEN =
  /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

function* iterTokens(text) {
  let at = 0;
  for (const found of text.matchAll(TOKEN)) {
    yield [null, text.slice(at, found.index)];
    const [all, string, colon, word] = found;
    if (string) {
      yield [colon ? "key" : "string", string];
      yield [null, colon ?? ""];
    } else {
      yield [word ? "word" : "number", all];
    }
    at = found.index + all.length;
  }
  yield [null, text.slice(at)];
}

export function JsonView({ value }) {
  const tokens = [...iterTokens(stringify(value, 2))];
  return html`<pre class="json mono" tabindex="0">
${tokens.map(([kind, text]) => (kind === null ? text : html`<span class=${kind}>${text}</span>`))}</pre>`;
}
