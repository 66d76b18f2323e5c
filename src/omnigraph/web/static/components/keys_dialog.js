/** The list of keys. */
import { html } from "../../vendor/preact.js";
import { Dialog } from "./dialog.js";

export function KeysDialog({ pages, onClose }) {
  const keys = [
    ...pages.map((page) => [["g", page.key], page.title]),
    [["/"], "Search"],
    [["?"], "This list"],
    [["Ctrl", "Enter"], "Run the query in the editor"],
  ];
  return html`<${Dialog} title="Keyboard" onClose=${onClose}>
    <dl class="facts">
      ${keys.map(
        ([names, meaning]) =>
          html`<dt key=${meaning}>${names.map((name) => html`<kbd>${name}</kbd> `)}</dt>
            <dd>${meaning}</dd>`,
      )}
    </dl>
  <//>`;
}
