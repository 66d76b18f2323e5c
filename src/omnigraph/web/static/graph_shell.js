/** The frame of the pages of one graph: bar, side, and the page that the address names. */
import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { Bar } from "./components/bar.js";
import { KeysDialog } from "./components/keys_dialog.js";
import { Busy, Failure } from "./components/notices.js";
import { Side } from "./components/side.js";
import { StatePicker } from "./components/state_picker.js";
import { createGraphApi } from "./graph_api.js";
import { createAddresses, GraphContext, readState, TypeCatalog } from "./graph_context.js";
import { useKeys } from "./keyboard.js";
import { buildAddress, navigate } from "./navigation.js";
import { findPage, PAGES } from "./pages.js";
import { useLoad } from "./use_load.js";

export function GraphShell({ graph, page, parts, query, session, onSignOut }) {
  const state = readState(query);
  const stateKey = JSON.stringify(state);
  const api = useMemo(() => createGraphApi(graph), [graph]);
  const found = useLoad((signal) => api.listTypes(state, signal), [api, stateKey]);
  const branches = useLoad((signal) => api.listBranches(signal), [api]);
  const [hasKeys, setHasKeys] = useState(false);
  const context = useMemo(
    () => ({
      graph,
      api,
      state,
      stateKey,
      session,
      address: createAddresses(graph, state),
      catalog: new TypeCatalog(found.data?.types ?? []),
      commit: found.data?.graph_commit_id ?? null,
      branches: branches.data?.branches ?? [],
      reload: () => {
        found.reload();
        branches.reload();
      },
    }),
    [graph, api, stateKey, session, found.data, branches.data],
  );
  useKeys(context.address, () => setHasKeys(true));
  return html`<${GraphContext.Provider} value=${context}>
    <div class="shell">
      <${Bar} session=${session} onSignOut=${onSignOut} onKeys=${() => setHasKeys(true)}>
        <${GraphPicker} graph=${graph} graphs=${session.graphs} />
        <span class="divider" aria-hidden="true">/</span>
        <${StatePicker} />
      <//>
      <${Side} page=${page} parts=${parts} />
      <main class="page" id="page" tabindex="-1">
        ${
          found.error
            ? html`<div class="content">
                <${Failure} error=${found.error} />
              </div>`
            : found.data === null
              ? html`<div class="content"><${Busy} /></div>`
              : html`<${Page} name=${page} parts=${parts} query=${query} />`
        }
      </main>
      ${hasKeys ? html`<${KeysDialog} pages=${PAGES} onClose=${() => setHasKeys(false)} />` : null}
    </div>
  <//>`;
}

function GraphPicker({ graph, graphs }) {
  const listed = graphs.includes(graph) ? graphs : [graph, ...graphs];
  const choose = (event) => navigate(buildAddress(["graphs", event.target.value]));
  return html`<label class="hidden-label" for="graph">Graph</label>
    <select id="graph" class="select" value=${graph} onChange=${choose}>
      ${listed.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>`;
}

/** The module of a page is fetched when the page is opened. */
function Page({ name, parts, query }) {
  const [loaded, setLoaded] = useState({
    name: null,
    Component: null,
    error: null,
  });
  const page = findPage(name);
  useEffect(() => {
    let isWanted = true;
    document.title = `${page?.title ?? "Not found"} · Omnigraph`;
    page?.load().then(
      (module) => isWanted && setLoaded({ name, Component: module.default, error: null }),
      (error) => isWanted && setLoaded({ name, Component: null, error }),
    );
    return () => {
      isWanted = false;
    };
  }, [name]);
  if (page === null) {
    return html`<div class="content"><h1>There is no such page</h1></div>`;
  }
  if (loaded.error)
    return html`<div class="content">
      <${Failure} error=${loaded.error} />
    </div>`;
  if (loaded.name !== name) return html`<div class="content"><${Busy} /></div>`;
  return html`<${loaded.Component} parts=${parts} query=${query} />`;
}
