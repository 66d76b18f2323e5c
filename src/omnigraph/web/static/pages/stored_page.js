/** The stored queries of a graph, as forms. */
import { html, useState } from "../../vendor/preact.js";
import { Empty, Failure, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { ParameterForm, readParameters } from "../components/parameter_form.js";
import { QueryResult } from "../components/query_result.js";
import { useGraph } from "../graph_context.js";
import { Link } from "../navigation.js";
import { useAction, useLoad } from "../use_load.js";

export default function StoredPage({ parts: [name] }) {
  const { api, address } = useGraph();
  const found = useLoad((signal) => api.listStoredQueries(signal), [api]);
  return html`<div class="content">
    <${PageHead}
      title="Stored queries"
      sub="Queries that the cluster of this graph has for everybody who may call them."
    />
    <${Loaded} load=${found}
      >${({ queries }) => {
        if (queries.length === 0)
          return html`<${Empty}
            >This graph has no stored queries. A cluster brings them: see its configuration.<//
          >`;
        const chosen = queries.find((each) => each.name === name) ?? queries[0];
        return html`<div
          class="with-panel"
          style=${{ gridTemplateColumns: "260px minmax(0, 1fr)" }}
        >
          <nav class="card" aria-label="Stored queries">
            <ul class="list">
              ${queries.map(
                (each) =>
                  html`<li key=${each.name}>
                    <${Link}
                      to=${address("stored", [each.name])}
                      aria-current=${each === chosen ? "page" : null}
                    >
                      ${each === chosen ? html`<strong>${each.name}</strong>` : each.name}<//
                    >
                    ${each.mutation ? html` <span class="badge warn">writes</span>` : null}
                    ${each.description ? html`<div class="muted small">${each.description}</div>` : null}
                  </li>`,
              )}
            </ul>
          </nav>
          <${StoredQuery} key=${chosen.name} query=${chosen} />
        </div>`;
      }}<//
    >
  </div>`;
}

function StoredQuery({ query }) {
  const { api, state, reload } = useGraph();
  const [given, setGiven] = useState({});
  const running = useAction(async () => {
    const params = readParameters(query.params, given);
    if (!query.mutation)
      return {
        answer: await api.invoke(query.name, {
          params,
          ...state,
          expect_mutation: false,
        }),
        nodes: {},
        body: null,
      };
    const change = await api.invoke(query.name, {
      params,
      branch: state.branch,
      expect_mutation: true,
    });
    reload();
    return { change };
  });
  const submit = (event) => {
    event.preventDefault();
    running.run();
  };
  return html`<form class="stack" onSubmit=${submit} aria-label=${query.name}>
    <div class="row spread">
      <h2>${query.name}</h2>
      <button class=${`button ${query.mutation ? "danger" : "primary"}`} disabled=${running.isBusy}>
        ${query.mutation ? "Write" : "Run"}
      </button>
    </div>
    ${query.instruction ? html`<p class="muted">${query.instruction}</p>` : null}
    ${query.params.length > 0 ? html`<${ParameterForm} params=${query.params} given=${given} onGiven=${setGiven} />` : null}
    <${Failure} error=${running.error} />
    ${running.data ? html`<${QueryResult} result=${running.data} />` : null}
  </form>`;
}
