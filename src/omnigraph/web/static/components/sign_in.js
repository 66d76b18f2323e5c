/** Asks for a token; it is tried before it is kept. */
import { html, useState } from "../../vendor/preact.js";
import { askSession } from "../graph_api.js";
import { forgetToken, keepToken } from "../session_store.js";
import { useAction } from "../use_load.js";
import { Failure } from "./notices.js";
import { Mark } from "./mark.js";

export function SignInPage({ onToken }) {
  const [token, setToken] = useState("");
  const trying = useAction(async () => {
    keepToken(token.trim());
    try {
      await askSession();
    } catch (error) {
      forgetToken();
      throw error;
    }
    onToken();
  });
  const submit = (event) => {
    event.preventDefault();
    trying.run();
  };
  return html`<main class="center">
    <form class="sign-in" onSubmit=${submit}>
      <h1 class="row"><${Mark} /> Sign in</h1>
      <p class="muted">
        This server needs a token. It stays in this tab, and is forgotten with it.
      </p>
      <div class="field">
        <label for="token">Token</label>
        <input
          id="token"
          class="input"
          type="password"
          autocomplete="off"
          autofocus
          spellcheck=${false}
          value=${token}
          aria-invalid=${trying.error !== null}
          onInput=${(event) => setToken(event.target.value)}
        />
      </div>
      <${Failure} error=${trying.error} />
      <button class="button primary" disabled=${token.trim() === "" || trying.isBusy}>
        Sign in
      </button>
    </form>
  </main>`;
}
