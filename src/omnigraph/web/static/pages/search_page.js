/** Search over all types: by words, by vectors, or both; and by id. */
import { html, useState } from "../../vendor/preact.js";
import { EntityLink, labelOf } from "../components/entity_link.js";
import { Empty, Failure, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { TypeName } from "../components/type_name.js";
import { Value } from "../components/value.js";
import { useGraph } from "../graph_context.js";
import { buildById } from "../graph_queries.js";
import { buildAddress, navigate, readPlace } from "../navigation.js";
import { listSearches } from "../search_plan.js";
import { useLoad } from "../use_load.js";

const MODES = [
  { name: "words", title: "Words" },
  { name: "vectors", title: "Meaning" },
  { name: "both", title: "Both" },
];

export default function SearchPage({ query }) {
  const { api, catalog, state, stateKey } = useGraph();
  const asked = query.get("q") ?? "";
  const mode = query.get("mode") ?? "words";
  const only = query.get("type") ?? "";
  const [text, setText] = useState(asked);
  const show = (changes) => {
    const { parts, query: now } = readPlace();
    navigate(buildAddress(parts, { ...Object.fromEntries(now), ...changes }));
  };
  const submit = (event) => {
    event.preventDefault();
    show({ q: text.trim() });
  };
  const searches = listSearches(catalog, mode, only);
  const found = useLoad(
    (signal) =>
      asked === ""
        ? Promise.resolve(null)
        : runSearches(api, state, searches, asked, catalog, signal),
    [api, stateKey, asked, mode, only],
  );
  return html`<div class="content">
    <${PageHead} title="Search" />
    <form class="row" role="search" onSubmit=${submit}>
      <input
        class="input grow"
        type="search"
        aria-label="Search for"
        placeholder="Words, or the id of an entity"
        value=${text}
        autofocus
        onInput=${(event) => setText(event.target.value)}
      />
      <select
        class="select"
        aria-label="How"
        value=${mode}
        onChange=${(event) => show({ mode: event.target.value })}
      >
        ${MODES.map((each) => html`<option key=${each.name} value=${each.name}>${each.title}</option>`)}
      </select>
      <select
        class="select"
        aria-label="Type"
        value=${only}
        onChange=${(event) => show({ type: event.target.value === "" ? null : event.target.value })}
      >
        <option value="">All types</option>
        ${catalog.nodes.map((type) => html`<option key=${type.name} value=${type.name}>${type.name}</option>`)}
      </select>
      <button class="button primary">Search</button>
    </form>
    ${
      searches.length === 0
        ? html`<${Empty}>${mode === "words" ? "No type has a text." : "No type has a vector."}<//>`
        : html`<${Loaded} load=${found} text="Searching"
            >${(data) => html`<${Results} data=${data} />`}<//
          >`
    }
  </div>`;
}

/** Every search at once; one that fails does not hide what the others found. */
async function runSearches(api, state, searches, asked, catalog, signal) {
  const byId = catalog.nodes.map((type) =>
    api
      .query(state, buildById(type), { id: asked }, signal)
      .then((answer) => ({ type, rows: answer.rows })),
  );
  const ranked = searches.map((search) =>
    api
      .query(state, search.text, { q: asked }, signal)
      .then((answer) => ({ ...search, rows: answer.rows })),
  );
  const [exact, found] = await Promise.all([Promise.allSettled(byId), Promise.allSettled(ranked)]);
  const failures = found.filter((each) => each.status === "rejected").map((each) => each.reason);
  return {
    exact: exact.flatMap(
      (each) => each.value?.rows.map((row) => ({ type: each.value.type, row })) ?? [],
    ),
    groups: found.flatMap((each) => (each.value?.rows.length ? [each.value] : [])),
    failures: [...new Map(failures.map((failure) => [failure.message, failure])).values()],
  };
}

function Results({ data }) {
  if (data === null)
    return html`<${Empty}>Type some words. The best entities of each type are listed.<//>`;
  const { exact, groups, failures } = data;
  return html`<div class="stack">
    ${failures.map((failure) => html`<${Failure} key=${failure.message} error=${failure} />`)}
    ${exact.length + groups.length + failures.length === 0 ? html`<${Empty}>Nothing was found.<//>` : null}
    ${
      exact.length === 0
        ? null
        : html`<section class="card">
            <div class="head"><h2>With this id</h2></div>
            <ul class="list">
              ${exact.map(
                ({ type, row }) =>
                  html`<li key=${type.name} class="row">
                    <${TypeName} kind="node" name=${type.name} />
                    <${EntityLink}
                      type=${type.name}
                      id=${row.x["@id"]}
                      label=${labelOf(type, row.x)}
                    />
                  </li>`,
              )}
            </ul>
          </section>`
    }
    ${groups.map((group) => html`<${Group} key=${`${group.type.name} ${group.property.name}`} group=${group} />`)}
  </div>`;
}

function Group({ group }) {
  const { type, property, rows } = group;
  return html`<section class="card">
    <div class="head">
      <h2><${TypeName} kind="node" name=${type.name} /></h2>
      <span class="muted small">in ${property.name}</span>
    </div>
    <ul class="list">
      ${rows.map(
        ({ x, score }) =>
          html`<li key=${x["@id"]}>
            <div class="row spread">
              <${EntityLink} type=${type.name} id=${x["@id"]} label=${labelOf(type, x)} />
              <span class="muted small">${Number(score).toPrecision(3)}</span>
            </div>
            ${
              property.kind === "string" && x[property.name] !== labelOf(type, x)
                ? html`<div class="excerpt muted">
                    <${Value} value=${x[property.name]} />
                  </div>`
                : null
            }
          </li>`,
      )}
    </ul>
  </section>`;
}
