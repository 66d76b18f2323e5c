/** The side: the pages of the graph, and its types with their counts. */
import { html } from "../../vendor/preact.js";
import { formatCount } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { Icon } from "../icons.js";
import { Link } from "../navigation.js";
import { PAGES } from "../pages.js";
import { TypeDot } from "./type_name.js";

export function Side({ page, parts }) {
  const { address, catalog } = useGraph();
  const isShown = (type) => page === "types" && parts[0] === type.kind && parts[1] === type.name;
  const list = (title, types) =>
    types.length === 0
      ? null
      : html`<div class="types">
          <h2 class="heading">${title}</h2>
          ${types.map(
            (type) =>
              html`<${Link}
                key=${type.name}
                to=${address("types", [type.kind, type.name])}
                aria-current=${isShown(type) ? "page" : null}
              >
                <${TypeDot} kind=${type.kind} name=${type.name} />
                <span class="name">${type.name}</span>
                <span class="count">${formatCount(type.entity_count)}</span>
              <//>`,
          )}
        </div>`;
  return html`<nav class="side" aria-label="Pages">
    ${PAGES.map(
      (each) =>
        html`<${Link}
          key=${each.name}
          to=${address(each.name)}
          aria-current=${each.name === page ? "page" : null}
        >
          <${Icon} name=${each.icon} />${each.title}
        <//>`,
    )}
    ${list("Nodes", catalog.nodes)} ${list("Edges", catalog.edges)}
  </nav>`;
}
