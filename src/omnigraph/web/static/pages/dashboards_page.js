/** Dashboards of a cluster: the list, and one with its panels. */
import { html } from "../../vendor/preact.js";
import { DashboardPanel } from "../components/dashboard_panel.js";
import { Empty, Loaded } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { pluralize } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { Link } from "../navigation.js";
import { useLoad } from "../use_load.js";

export default function DashboardsPage({ parts: [name] }) {
  const { api } = useGraph();
  const found = useLoad((signal) => api.listDashboards(signal), [api]);
  return html`<div class="content">
    <${Loaded} load=${found}
      >${({ dashboards }) =>
        name === undefined
          ? html`<${DashboardList} dashboards=${dashboards} />`
          : html`<${Dashboard} found=${dashboards.find((each) => each.name === name)} />`}<//
    >
  </div>`;
}

function DashboardList({ dashboards }) {
  const { address } = useGraph();
  return html`<${PageHead}
      title="Dashboards"
      sub="Stored queries as charts and tables, declared in the cluster."
    />
    ${
      dashboards.length === 0
        ? html`<${Empty}>There is no dashboard of this graph that you may see.<//>`
        : html`<div class="tiles">
            ${dashboards.map(
              (each) =>
                html`<${Link}
                  key=${each.name}
                  class="tile"
                  to=${address("dashboards", [each.name])}
                >
                  <span class="name">${each.title}</span>
                  ${each.description ? html`<span class="muted">${each.description}</span>` : null}
                  <span class="small muted">${pluralize(each.panels.length, "panel")}</span>
                <//>`,
            )}
          </div>`
    }`;
}

function Dashboard({ found }) {
  const { address } = useGraph();
  if (found === undefined) return html`<h1>There is no such dashboard</h1>`;
  return html`<${PageHead} title=${found.title} sub=${found.description}>
      <${Link} class="button plain" to=${address("dashboards")}>All dashboards<//>
    <//>
    <div class="panels">
      ${found.panels.map((panel, at) => html`<${DashboardPanel} key=${at} panel=${panel} />`)}
    </div>`;
}
