/** One entity: its values, its neighbours, and who gave it what it has. */
import { html, useState } from "../../vendor/preact.js";
import { titleOf } from "../components/commit_line.js";
import { EntityHistory } from "../components/entity_history.js";
import { EntityLink } from "../components/entity_link.js";
import { Neighbours } from "../components/neighbours.js";
import { Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { Tabs } from "../components/tabs.js";
import { TypeName } from "../components/type_name.js";
import { Value } from "../components/value.js";
import { formatAge } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { findLabel } from "../graph_queries.js";
import { Link } from "../navigation.js";
import { useLoad } from "../use_load.js";

export default function EntityPage({ parts: [kind, name, id] }) {
  const { api, catalog, state, stateKey, address } = useGraph();
  const [tab, setTab] = useState("values");
  const type = catalog.find(kind, name);
  const entity = { kind, type: name, id };
  const image = useLoad(
    (signal) => api.readEntity(state, entity, signal),
    [api, stateKey, kind, name, id],
  );
  const label = type && findLabel(type);
  const title = (label && image.data?.properties[label.name]) ?? id;
  const tabs = [
    { name: "values", title: "Values" },
    ...(state.branch === undefined ? [] : [{ name: "history", title: "History" }]),
  ];
  return html`<div class="content">
    <${PageHead}
      title=${title}
      sub=${html`<span class="row">
        <${Link} to=${address("types", [kind, name])}><${TypeName} kind=${kind} name=${name} /><//>
        <code>${id}</code>
      </span>`}
    >
      ${kind === "node" ? html`<${Link} class="button" to=${address("explore", [], { type: name, id })}>Explore<//>` : null}
    <//>
    <${Tabs} label="Entity" tabs=${tabs} chosen=${tab} onChoose=${setTab} />
    ${
      tab === "history"
        ? html`<${EntityHistory}
            key=${`${name} ${id} ${stateKey}`}
            entity=${{ ...entity, branch: state.branch }}
          />`
        : html`<${Loaded} load=${image}
            >${(data) =>
              html`<div class="columns">
                <section class="card">
                  <div class="head"><h2>Properties</h2></div>
                  <${Properties} type=${type} image=${data} entity=${entity} />
                </section>
                ${
                  kind === "node"
                    ? html`<${Neighbours}
                        key=${`${name} ${id} ${stateKey}`}
                        type=${type}
                        id=${id}
                      />`
                    : null
                }
              </div>`}<//
          >`
    }
  </div>`;
}

function Properties({ type, image, entity }) {
  const { api, state, stateKey } = useGraph();
  const isNewest = state.branch !== undefined;
  const blame = useLoad(
    (signal) =>
      isNewest ? api.blame({ ...entity, branch: state.branch }, signal) : Promise.resolve(null),
    [api, stateKey, entity.kind, entity.type, entity.id],
  );
  const ends = image.endpoints
    ? [
        ["@src", type?.source, image.endpoints.from],
        ["@dst", type?.target, image.endpoints.to],
      ]
    : [];
  return html`<dl class="facts">
    ${ends.map(
      ([name, of, id]) =>
        html`<dt key=${name}>${name}</dt>
          <dd><${EntityLink} type=${of} id=${id} /></dd>`,
    )}
    ${Object.entries(image.properties).map(
      ([name, value]) =>
        html`<dt key=${name}>${name}</dt>
          <dd class="row spread">
            <${Value} value=${value} />
            <${Blamed} commit=${blame.data?.properties[name]} />
          </dd>`,
    )}
  </dl>`;
}

function Blamed({ commit }) {
  return commit ? html`<${BlamedCommit} commit=${commit} />` : null;
}

function BlamedCommit({ commit }) {
  const { address } = useGraph();
  return html`<${Link}
    class="muted small"
    to=${address("commits", [commit.graph_commit_id])}
    title=${titleOf(commit)}
  >
    ${commit.actor_id ?? "unknown"}, ${formatAge(commit.created_at)}
  <//>`;
}
