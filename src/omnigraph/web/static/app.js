/** Who is here, and which graph: sign-in, the choice of a graph, or the pages of one. */
import { html, useEffect } from "../vendor/preact.js";
import { SignInPage } from "./components/sign_in.js";
import { Busy, Failure } from "./components/notices.js";
import { GraphList } from "./components/graph_list.js";
import { GraphShell } from "./graph_shell.js";
import { askSession } from "./graph_api.js";
import { forgetToken } from "./session_store.js";
import { buildAddress, navigate, usePlace } from "./navigation.js";
import { useLoad } from "./use_load.js";

export function App() {
  const place = usePlace();
  const session = useLoad(askSession, []);
  const { data, error } = session;
  const only = data?.graphs.length === 1 ? data.graphs[0] : null;
  const isHome = place.parts[0] !== "graphs" || place.parts.length < 2;
  useEffect(() => {
    if (isHome && only !== null) {
      navigate(buildAddress(["graphs", only]), { isReplaced: true });
    }
  }, [isHome, only]);
  const signOut = () => {
    forgetToken();
    session.reload();
  };
  if (error?.isSignedOut) return html`<${SignInPage} onToken=${session.reload} />`;
  if (error) return html`<main class="center"><${Failure} error=${error} /></main>`;
  if (data === null || (isHome && only !== null)) {
    return html`<main class="center">
      <${Busy} text="Asking the server" />
    </main>`;
  }
  if (isHome) return html`<${GraphList} session=${data} onSignOut=${signOut} />`;
  const [, graph, page, ...rest] = place.parts;
  return html`<${GraphShell}
    key=${graph}
    graph=${graph}
    page=${page ?? ""}
    parts=${rest}
    query=${place.query}
    session=${data}
    onSignOut=${signOut}
  />`;
}
