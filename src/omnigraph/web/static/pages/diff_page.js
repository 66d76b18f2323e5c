/** The difference of any two states: branches, tags, commits, versions or times. */
import { html, useState } from "../../vendor/preact.js";
import { DiffView } from "../components/diff_view.js";
import { Empty } from "../components/notices.js";
import { PageHead } from "../components/page_head.js";
import { StateInput } from "../components/state_input.js";
import { MAIN, useGraph } from "../graph_context.js";
import { buildAddress, navigate, readPlace } from "../navigation.js";

export default function DiffPage({ query }) {
  const { branches } = useGraph();
  const other = branches.find((name) => name !== MAIN) ?? "";
  const [old, setOld] = useState(query.get("old") ?? MAIN);
  const [now, setNow] = useState(query.get("new") ?? other);
  const isReview = query.get("review") !== "no";
  const compare = (changes) => {
    const { parts, query: found } = readPlace();
    navigate(
      buildAddress(parts, {
        ...Object.fromEntries(found),
        old,
        new: now,
        ...changes,
      }),
    );
  };
  const submit = (event) => {
    event.preventDefault();
    compare({});
  };
  const asked = query.get("new");
  // Only a branch has a place where it left another one.
  const canReview = branches.includes(query.get("old") ?? MAIN);
  const body =
    asked === null
      ? null
      : {
          old: query.get("old") ?? MAIN,
          new: asked,
          review: isReview && canReview,
        };
  return html`<div class="content">
    <${PageHead}
      title="Diff"
      sub="What differs between two states: branches, tags, commits, or times of main."
    />
    <form class="row" onSubmit=${submit} aria-label="States">
      <${StateInput} label="From" value=${old} onValue=${setOld} />
      <span class="muted" aria-hidden="true">→</span>
      <${StateInput} label="To" value=${now} onValue=${setNow} />
      <button class="button primary" disabled=${now.trim() === ""}>Compare</button>
      <label class="check"
        ><input
          type="checkbox"
          checked=${isReview}
          disabled=${!canReview}
          onChange=${(event) => compare({ review: event.target.checked ? null : "no" })}
        />
        Only what the second one changed since they parted</label
      >
    </form>
    ${body === null ? html`<${Empty}>Choose two states.<//>` : html`<${DiffView} key=${JSON.stringify(body)} body=${body} />`}
  </div>`;
}
