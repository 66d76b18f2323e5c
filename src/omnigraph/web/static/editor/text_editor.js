/**
 * The editor. It lives in a shadow root, where its styles are objects and not inline text, which
 * the content policy of the pages would refuse.
 */
import {
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  EditorState,
  EditorView,
  highlightActiveLine,
  history,
  historyKeymap,
  indentUnit,
  keymap,
  lineNumbers,
  lintKeymap,
  setDiagnostics,
} from "../../vendor/codemirror.js";
import { html, useEffect, useRef } from "../../vendor/preact.js";
import { createCompletion } from "./gq_completion.js";
import { gqLanguage } from "./gq_language.js";
import { editorTheme } from "./editor_theme.js";

export function TextEditor({
  text,
  label,
  catalog,
  diagnostics = [],
  isReadOnly = false,
  onText,
  onRun,
}) {
  const host = useRef(null);
  const view = useRef(null);
  const calls = useRef({});
  calls.current = { catalog, onText, onRun };
  useEffect(() => {
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    view.current = createView({ root, text, label, calls, isReadOnly });
    return () => view.current.destroy();
  }, []);
  useEffect(() => {
    const current = view.current.state.doc.toString();
    if (current !== text) {
      view.current.dispatch({
        changes: { from: 0, to: current.length, insert: text },
      });
    }
  }, [text]);
  useEffect(() => {
    const { state } = view.current;
    view.current.dispatch(
      setDiagnostics(
        state,
        diagnostics.map((found) => place(found, state.doc)),
      ),
    );
  }, [diagnostics]);
  return html`<div class="editor" ref=${host}></div>`;
}

const BRACKETS = new Set(["(", "[", "{", '"']);

/**
 * What is typed over a selection. A browser would keep the style of the text before it by inline
 * styles, which the content policy refuses and reports.
 */
function typeOver(event, view) {
  const isPlain =
    event.inputType === "insertText" &&
    event.data &&
    !event.isComposing &&
    !BRACKETS.has(event.data);
  if (!isPlain || view.state.selection.main.empty || view.state.readOnly) return false;
  view.dispatch(view.state.replaceSelection(event.data));
  return true;
}

function createView({ root, text, label, calls, isReadOnly }) {
  const run = () => {
    calls.current.onRun?.();
    return true;
  };
  const writing = isReadOnly
    ? [EditorState.readOnly.of(true)]
    : [
        history(),
        closeBrackets(),
        highlightActiveLine(),
        autocompletion({
          override: [createCompletion(() => calls.current.catalog)],
        }),
        keymap.of([
          { key: "Mod-Enter", run },
          ...closeBracketsKeymap,
          ...historyKeymap,
          ...completionKeymap,
          ...lintKeymap,
        ]),
      ];
  const extensions = [
    ...writing,
    lineNumbers(),
    drawSelection(),
    bracketMatching(),
    indentUnit.of("  "),
    keymap.of(defaultKeymap),
    gqLanguage,
    editorTheme,
    EditorView.domEventHandlers({ beforeinput: typeOver }),
    EditorView.contentAttributes.of({ "aria-label": label }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) calls.current.onText?.(update.state.doc.toString());
    }),
  ];
  return new EditorView({
    parent: root,
    root,
    state: EditorState.create({ doc: text, extensions }),
  });
}

/** A finding of the server, whose columns count characters, as places of the editor. */
function place(found, doc) {
  const from = locate(found.position, doc);
  const to = Math.max(locate(found.end, doc), Math.min(from + 1, doc.length));
  const message = found.fix ? `${found.message}\n${found.fix}` : found.message;
  return { from, to, severity: found.severity, message, source: found.code };
}

function locate({ line, column }, doc) {
  if (line > doc.lines) return doc.length;
  const { from, text } = doc.line(line);
  return from + [...text].slice(0, column - 1).join("").length;
}
