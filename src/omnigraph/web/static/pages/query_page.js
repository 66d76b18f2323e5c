/** The query editor: findings while one types, parameters as a form, and the answer. */
import { html, useEffect, useState } from "../../vendor/preact.js";
import { PageHead } from "../components/page_head.js";
import { ParameterForm, readParameters } from "../components/parameter_form.js";
import { QueryResult } from "../components/query_result.js";
import { Empty, Failure } from "../components/notices.js";
import { TextEditor } from "../editor/text_editor.js";
import { useGraph } from "../graph_context.js";
import { Icon } from "../icons.js";
import { buildAddress, navigate, readPlace } from "../navigation.js";
import { useAction } from "../use_load.js";

const CHECK_AFTER_MS = 250;
const NONE = { diagnostics: [], queries: [] };

function draftFor(catalog) {
  const type = catalog.nodes[0];
  if (type === undefined) return "query q() {\n  return { 1 + 1 as two }\n}\n";
  return `query q() {\n  match {\n    $x: ${type.name}\n  }\n  return { $x }\n  limit 20\n}\n`;
}

export default function QueryPage({ query }) {
  const { api, catalog, state, stateKey, reload } = useGraph();
  const [text, setText] = useState(() => query.get("text") ?? draftFor(catalog));
  const [chosen, setChosen] = useState(null);
  const [given, setGiven] = useState(() => readGiven(query.get("params")));
  const checked = useCheck(api, state, stateKey, text);
  const selected =
    checked.queries.find((each) => each.name === chosen) ?? checked.queries[0] ?? null;
  const running = useAction(async () => {
    keepInAddress(text, given);
    const params = readParameters(selected?.params ?? [], given);
    const body = { query: text, name: selected?.name ?? null, params };
    if (selected?.mutation) {
      const change = await api.runMutation({ ...body, branch: state.branch });
      reload();
      return { change };
    }
    return {
      answer: await api.runRead({ ...body, ...state }),
      nodes: selected?.nodes ?? {},
      body,
    };
  });
  const errors = checked.diagnostics.filter((each) => each.severity === "error");
  return html`<div class="content">
    <${PageHead} title="Query" sub="Ctrl+Enter runs it. What it finds wrong is underlined.">
      ${
        checked.queries.length > 1
          ? html`<select
              class="select"
              aria-label="Which query"
              value=${selected?.name}
              onChange=${(event) => setChosen(event.target.value)}
            >
              ${checked.queries.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}
            </select>`
          : null
      }
      <button
        class=${`button ${selected?.mutation ? "danger" : "primary"}`}
        disabled=${running.isBusy}
        onClick=${() => running.run()}
      >
        <${Icon} name="play" />${selected?.mutation ? "Write" : "Run"}
      </button>
    <//>
    <${TextEditor}
      label="Query"
      text=${text}
      catalog=${catalog}
      diagnostics=${checked.diagnostics}
      onText=${setText}
      onRun=${() => running.run()}
    />
    <${Findings} errors=${errors} />
    ${
      selected && selected.params.length > 0
        ? html`<${ParameterForm} params=${selected.params} given=${given} onGiven=${setGiven} />`
        : null
    }
    <${Failure} error=${running.error} />
    ${
      running.data === null && !running.error
        ? html`<${Empty}>${running.isBusy ? "Running…" : "The answer will be here."}<//>`
        : null
    }
    ${running.data ? html`<${QueryResult} result=${running.data} />` : null}
  </div>`;
}

function readGiven(text) {
  try {
    const found = JSON.parse(text ?? "{}");
    return Object.fromEntries(
      Object.entries(found).map(([name, value]) => [
        name,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    );
  } catch {
    return {};
  }
}

/** The address of a query that was run can be sent to others. */
function keepInAddress(text, given) {
  const { parts, query } = readPlace();
  const params = Object.keys(given).length === 0 ? null : JSON.stringify(given);
  navigate(buildAddress(parts, { ...Object.fromEntries(query), text, params }), {
    isReplaced: true,
  });
}

/** What the compiler finds, a moment after the last key. */
function useCheck(api, state, stateKey, text) {
  const [found, setFound] = useState(NONE);
  useEffect(() => {
    const ending = new AbortController();
    const timer = setTimeout(() => {
      api.check(state, text, ending.signal).then(setFound, (error) => {
        if (error.name !== "AbortError") setFound(NONE);
      });
    }, CHECK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [api, stateKey, text]);
  return found;
}

function Findings({ errors }) {
  if (errors.length === 0) return null;
  return html`<div class="notice bad" aria-live="polite">
    ${errors.slice(0, 3).map(
      (found) =>
        html`<div key=${`${found.code} ${found.position.byte}`}>
          <span class="mono small muted">${found.position.line}:${found.position.column}</span>
          ${" "}${found.message}${found.fix ? html` <span class="muted">${found.fix}</span>` : null}
        </div>`,
    )}
    ${errors.length > 3 ? html`<div class="muted">and ${errors.length - 3} more</div>` : null}
  </div>`;
}
