/** A dialog over the page; Escape closes it, and the focus goes back to where it was. */
import { html, useEffect, useRef } from "../../vendor/preact.js";
import { Icon } from "../icons.js";

export function Dialog({ title, onClose, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  return html`<dialog ref=${dialog} onClose=${onClose} aria-label=${title}>
    <div class="stack">
      <div class="row spread">
        <h2>${title}</h2>
        <button class="button plain" aria-label="Close" onClick=${() => dialog.current.close()}>
          <${Icon} name="close" />
        </button>
      </div>
      ${children}
    </div>
  </dialog>`;
}
