/** The bar on top: the mark, what is chosen, who is signed in, and the theme. */
import { html } from "../../vendor/preact.js";
import { Icon } from "../icons.js";
import { Link } from "../navigation.js";
import { toggleTheme } from "../theme.js";
import { Mark } from "./mark.js";
import { useTheme } from "./use_theme.js";

export function Bar({ session, onSignOut, onKeys, children }) {
  const theme = useTheme();
  const other = theme === "dark" ? "light" : "dark";
  return html`<header class="bar">
    <${Link} class="brand" to="/ui/"><${Mark} /><span class="name">Omnigraph</span><//>
    ${children}
    <span class="grow"></span>
    ${
      onKeys
        ? html`<button
            class="button plain"
            onClick=${onKeys}
            aria-label="Keyboard"
            title="Keyboard (?)"
          >
            <${Icon} name="keyboard" />
          </button>`
        : null
    }
    <button
      class="button plain"
      onClick=${toggleTheme}
      aria-label=${`Use ${other} colours`}
      title=${`Use ${other} colours`}
    >
      <${Icon} name=${other === "dark" ? "moon" : "sun"} />
    </button>
    ${
      session.actor_id === null
        ? null
        : html`<span class="badge accent" title="Signed in as">${session.actor_id}</span>
            <button
              class="button plain"
              onClick=${onSignOut}
              aria-label="Sign out"
              title="Sign out"
            >
              <${Icon} name="leave" />
            </button>`
    }
  </header>`;
}
