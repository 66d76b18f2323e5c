/** What commits made of an entity, the newest first; more are read when they are wanted. */
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { nameOp } from "../formats.js";
import { useGraph } from "../graph_context.js";
import { CommitLine, titleOf } from "./commit_line.js";
import { Busy, Empty, Failure } from "./notices.js";
import { Value } from "./value.js";

const AT_ONCE = 20;

export function EntityHistory({ entity }) {
  const { api } = useGraph();
  const [versions, setVersions] = useState([]);
  const [status, setStatus] = useState("busy");
  const [error, setError] = useState(null);
  const lines = useRef(null);
  const readMore = async () => {
    setStatus("busy");
    try {
      const found = [];
      let isOver = false;
      while (found.length < AT_ONCE && !isOver) {
        const next = await lines.current.next();
        isOver = next.done;
        if (!isOver) found.push(next.value);
      }
      setVersions((before) => [...before, ...found]);
      setStatus(isOver ? "over" : "more");
    } catch (failure) {
      if (failure.name !== "AbortError") setError(failure);
    }
  };
  useEffect(() => {
    const ending = new AbortController();
    lines.current = api.history(entity, ending.signal);
    readMore();
    return () => ending.abort();
  }, []);
  return html`<section class="card">
    <${Failure} error=${error} />
    ${status === "over" && versions.length === 0 ? html`<${Empty}>No commit of this branch changed it.<//>` : null}
    <ol class="list">
      ${versions.map(
        (version) => html`<${Version} version=${version} key=${version.commit.graph_commit_id} />`,
      )}
    </ol>
    ${status === "busy" && !error ? html`<div class="body"><${Busy} /></div>` : null}
    ${
      status === "more"
        ? html`<div class="body">
            <button class="button" onClick=${readMore}>Older versions</button>
          </div>`
        : null
    }
  </section>`;
}

function Version({ version }) {
  const { op, commit, before, after } = version;
  const tone = { insert: "good", delete: "bad", update: "warn" }[op];
  return html`<li class="stack" style=${{ gap: "4px" }}>
    <div class="row"><span class=${`badge ${tone}`}>${nameOp(op)}</span>${titleOf(commit)}</div>
    <${CommitLine} commit=${commit} />
    ${
      op === "update"
        ? version.changed.map(
            (name) =>
              html`<div class="small" key=${name}>
                <span class="muted">${name}: </span>
                <span class="before"><${Value} value=${valueOf(before, name)} /></span>
                ${" → "}
                <span class="after"><${Value} value=${valueOf(after, name)} /></span>
              </div>`,
          )
        : null
    }
  </li>`;
}

/** A property of an image; the ends of an edge stand apart from the others. */
export function valueOf(image, name) {
  if (name === "@src") return image?.endpoints?.from;
  if (name === "@dst") return image?.endpoints?.to;
  return image?.properties[name];
}
