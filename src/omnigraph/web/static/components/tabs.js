/** Tabs over a panel; the arrow keys go from one to the next. */
import { html } from "../../vendor/preact.js";

export function Tabs({ tabs, chosen, onChoose, label }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = tabs.findIndex((tab) => tab.name === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    onChoose(next.name);
    event.currentTarget.children[tabs.indexOf(next)].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${tabs.map(
      (tab) =>
        html`<button
          key=${tab.name}
          type="button"
          role="tab"
          aria-selected=${tab.name === chosen}
          tabindex=${tab.name === chosen ? 0 : -1}
          onClick=${() => onChoose(tab.name)}
        >
          ${tab.title}
        </button>`,
    )}
  </div>`;
}
