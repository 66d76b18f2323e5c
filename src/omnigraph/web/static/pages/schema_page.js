/** The schema: as a diagram, as its text, and what a changed text would do. */
import { html, useMemo, useState } from "../../vendor/preact.js";
import { CommitLine } from "../components/commit_line.js";
import { Empty, Failure, Loaded, Notice } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { SchemaDiagram } from "../components/schema_diagram.js";
import { Tabs } from "../components/tabs.js";
import { TextEditor } from "../editor/text_editor.js";
import { pluralize, stringify } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { useAction, useLoad } from "../use_load.js";

const TABS = [
  { name: "diagram", title: "Diagram" },
  { name: "text", title: "Text and changes" },
];

export default function SchemaPage() {
  const { api, catalog, state, stateKey } = useGraph();
  const [tab, setTab] = useState("diagram");
  const schema = useLoad((signal) => api.readSchema(state, signal), [api, stateKey]);
  const sub = `${pluralize(catalog.nodes.length, "node type")}, ${pluralize(catalog.edges.length, "edge type")}`;
  return html`<div class="content">
    <${PageHead} title="Schema" sub=${sub} />
    <${Tabs} label="Schema" tabs=${TABS} chosen=${tab} onChoose=${setTab} />
    ${
      tab === "diagram"
        ? html`<section class="card">
            <div class="body table-box" tabindex="0" role="region" aria-label="Diagram">
              ${
                catalog.nodes.length === 0
                  ? html`<${Empty}>The schema has no types yet.<//>`
                  : html`<${SchemaDiagram} />`
              }
            </div>
          </section>`
        : html`<${Loaded} load=${schema}>
            ${(data) => html`<${SchemaText} key=${data.schema_source} text=${data.schema_source} />`}
          <//>`
    }
  </div>`;
}

function SchemaText({ text }) {
  const { api, catalog, state, reload } = useGraph();
  const [changed, setChanged] = useState(text);
  const isReadOnly = state.branch === undefined;
  const planning = useAction(() =>
    api.applySchema({ schema_source: changed, branch: state.branch, dry_run: true }),
  );
  const applying = useAction(async () => {
    const result = await api.applySchema({ schema_source: changed, branch: state.branch });
    reload();
    return result;
  });
  const edit = (next) => {
    setChanged(next);
    planning.clear();
    applying.clear();
  };
  const isSame = changed === text;
  const plan = planning.data;
  const failure = planning.error ?? applying.error;
  const problems = listProblems(failure);
  return html`<div class="stack">
    <${TextEditor}
      label="Schema"
      text=${changed}
      catalog=${catalog}
      isReadOnly=${isReadOnly}
      diagnostics=${useMemo(() => listPlaces(failure), [failure])}
      onText=${edit}
      onRun=${() => planning.run()}
    />
    <div class="row">
      <button
        class="button primary"
        disabled=${isSame || isReadOnly || planning.isBusy}
        onClick=${() => planning.run()}
      >
        Plan the change
      </button>
      ${
        isSame
          ? html`<span class="muted"
              >Change the text to see what that would do; nothing is written.</span
            >`
          : html`<button class="button plain" onClick=${() => edit(text)}>As it was</button>`
      }
    </div>
    ${
      problems.length > 0
        ? html`<${Problems} problems=${problems} />`
        : html`<${Failure} error=${failure} />`
    }
    ${
      plan && !applying.data
        ? html`<${Plan}
            plan=${plan}
            branch=${state.branch}
            isBusy=${applying.isBusy}
            onApply=${() => applying.run()}
          />`
        : null
    }
    ${
      applying.data
        ? html`<${Notice} kind="good">
            <strong>The schema of ${state.branch} was changed</strong>
            ${applying.data.commit ? html`<${CommitLine} commit=${applying.data.commit} />` : null}
          <//>`
        : null
    }
  </div>`;
}

/** Where the findings are; only their first characters are known. */
function listPlaces(error) {
  const found = error?.document?.diagnostics ?? [];
  return found.map((each) => ({ ...each, end: each.position }));
}

function listProblems(error) {
  const { diagnostics = [], problems = [] } = error?.document ?? {};
  return [...diagnostics, ...problems];
}

/** Every finding of a text that is not a schema, and every reason against a change. */
function Problems({ problems }) {
  return html`<section class="card">
    <ul class="list">
      ${problems.map(
        (each, at) =>
          html`<li key=${at}>
            ${
              each.position
                ? html`<code class="muted">${each.position.line}:${each.position.column}</code> `
                : null
            }
            ${each.message} ${each.fix ? html`<span class="muted">${each.fix}</span>` : null}
          </li>`,
      )}
    </ul>
  </section>`;
}

function Plan({ plan, branch, isBusy, onApply }) {
  if (plan.step_count === 0) return html`<${Empty}>The text means the same as before.<//>`;
  return html`<section class="card">
    <div class="head">
      <h2>${pluralize(plan.step_count, "step")}</h2>
      <button class="button danger" disabled=${!plan.supported || isBusy} onClick=${onApply}>
        Apply to ${branch}
      </button>
    </div>
    <ul class="list">
      ${plan.steps.map((step, at) => html`<li key=${at}><${Step} step=${step} /></li>`)}
      ${(plan.warnings ?? []).map((text) => html`<li key=${text} class="changed">${text}</li>`)}
      ${(plan.findings ?? []).map(
        (each) =>
          html`<li key=${stringify(each)} class="changed">${each.message ?? stringify(each)}</li>`,
      )}
    </ul>
  </section>`;
}

/** A step: its kind in words, and what it is about. */
function Step({ step: { kind, ...rest } }) {
  const tone =
    kind.startsWith("drop") || kind.startsWith("unsupported")
      ? "bad"
      : kind.startsWith("add")
        ? "good"
        : "";
  return html`<span class="row">
    <span class=${`badge ${tone}`}>${kind.replaceAll("_", " ")}</span>
    ${Object.entries(rest).map(
      ([name, value]) =>
        html`<span key=${name}
          ><span class="muted">${name.replaceAll("_", " ")}</span>
          <code> ${typeof value === "string" ? value : stringify(value)}</code></span
        >`,
    )}
  </span>`;
}
