/** The entities of a type, page by page; filtered by a property, and in the order of any. */
import { html } from "../../vendor/preact.js";
import { DataTable } from "../components/data_table.js";
import { EntityLink } from "../components/entity_link.js";
import { FilterForm } from "../components/filter_form.js";
import { Empty, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { TypeName } from "../components/type_name.js";
import { formatCount, pluralize } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { buildPage } from "../graph_queries.js";
import { buildAddress, Link, navigate, readPlace } from "../navigation.js";
import { useLoad } from "../use_load.js";

const ROWS = 50;
const NUMBERS = new Set(["int", "bigint", "float"]);

function readFilter(type, query) {
  const property = type?.properties.find((each) => each.name === query.get("by"));
  if (property === undefined) return null;
  return {
    property,
    operator: query.get("is") ?? "=",
    text: query.get("value") ?? "",
  };
}

function readSort(type, query) {
  const text = query.get("sort");
  if (text === null) return null;
  const by = text.replace(/^-/, "");
  return type?.properties.some((each) => each.name === by)
    ? { by, isDown: text.startsWith("-") }
    : null;
}

/** The same page with other members of its query string. */
function show(changes) {
  const { parts, query } = readPlace();
  navigate(buildAddress(parts, { ...Object.fromEntries(query), ...changes }));
}

export default function TypePage({ parts: [kind, name], query }) {
  const { api, catalog, state, stateKey, address } = useGraph();
  const type = catalog.find(kind, name);
  const filter = readFilter(type, query);
  const sort = readSort(type, query);
  const offset = Math.max(0, Number(query.get("from")) || 0);
  const page = type && buildPage(type, { filter, sort, limit: ROWS, offset });
  const rows = useLoad(
    (signal) =>
      page ? api.query(state, page.text, page.params, signal) : Promise.resolve({ rows: [] }),
    [api, stateKey, page?.text, JSON.stringify(page?.params)],
  );
  if (type === null)
    return html`<div class="content">
      <h1>There is no type ${name} here</h1>
    </div>`;
  const sub =
    type.kind === "edge"
      ? html`${pluralize(type.entity_count, "edge")} from
          <${Link} to=${address("types", ["node", type.source])}>${type.source}<//>
          to
          <${Link} to=${address("types", ["node", type.target])}>${type.target}<//>`
      : html`${pluralize(type.entity_count, "node")}${type.description ? `: ${type.description}` : ""}`;
  return html`<div class="content">
    <${PageHead} title=${html`<${TypeName} kind=${kind} name=${name} />`} sub=${sub}>
      <${Link}
        class="button"
        to=${address("query", [], { text: page.text, params: JSON.stringify(page.params) })}
      >
        Open as query
      <//>
    <//>
    <${FilterForm}
      key=${name}
      type=${type}
      filter=${filter}
      onFilter=${(given) => show({ from: null, by: given?.by ?? null, is: given?.is ?? null, value: given?.value ?? null })}
    />
    <section class="card">
      <${Loaded} load=${rows}
        >${(data) =>
          data.rows.length === 0
            ? html`<${Empty}
                >${filter ? "No entity has such a value." : "There are no entities yet."}<//
              >`
            : html`<${EntityTable} type=${type} page=${page} rows=${data.rows} sort=${sort} />`}<//
      >
    </section>
    <${Pager}
      offset=${offset}
      count=${rows.data?.rows.length ?? 0}
      total=${filter ? null : type.entity_count}
    />
  </div>`;
}

function EntityTable({ type, page, rows, sort }) {
  const end = (name, of) => ({
    name,
    title: `@${name}`,
    isFit: true,
    cell: (row) => html`<${EntityLink} type=${of} id=${row[name]} />`,
  });
  const columns = [
    {
      name: "id",
      title: "@id",
      isFit: true,
      cell: (row) => html`<${EntityLink} kind=${type.kind} type=${type.name} id=${row.id} />`,
    },
    ...(type.kind === "edge" ? [end("source", type.source), end("target", type.target)] : []),
    ...page.properties.map((property, at) => ({
      name: `c${at}`,
      title: property.name,
      isNumber: NUMBERS.has(property.kind),
      sort: property.kind !== "list",
    })),
  ];
  const at = page.properties.findIndex((property) => property.name === sort?.by);
  const onSort = (column) => {
    const by = page.properties[Number(column.slice(1))].name;
    const isDown = sort?.by === by && !sort.isDown;
    show({ from: null, sort: `${isDown ? "-" : ""}${by}` });
  };
  return html`<${DataTable}
    label=${`Entities of ${type.name}`}
    columns=${columns}
    rows=${rows}
    keyOf=${(row) => row.id}
    onSort=${onSort}
    sorted=${at < 0 ? null : { by: `c${at}`, isDown: sort.isDown }}
  />`;
}

function Pager({ offset, count, total }) {
  if (count === 0 && offset === 0) return null;
  const last = offset + count;
  return html`<div class="row spread">
    <span class="muted"
      >${formatCount(Math.min(offset + 1, last))}–${formatCount(last)}
      ${total === null ? "" : ` of ${formatCount(total)}`}</span
    >
    <div class="row">
      <button
        class="button"
        disabled=${offset === 0}
        onClick=${() => show({ from: offset > ROWS ? offset - ROWS : null })}
      >
        Previous
      </button>
      <button
        class="button"
        disabled=${count < ROWS || last === total}
        onClick=${() => show({ from: last })}
      >
        Next
      </button>
    </div>
  </div>`;
}
