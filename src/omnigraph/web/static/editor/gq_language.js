/** Colours for queries and schemas: both languages have one lexical form. */
import {
  HighlightStyle,
  StreamLanguage,
  syntaxHighlighting,
  tags,
} from "../../vendor/codemirror.js";
import { FUNCTIONS, KEYWORDS, SCALARS, SCHEMA_WORDS } from "./gq_words.js";

const words = new Set([...KEYWORDS, ...SCHEMA_WORDS]);
const functions = new Set(FUNCTIONS);
const scalars = new Set(SCALARS);

function readToken(stream, state) {
  if (state.isInComment) {
    state.isInComment = !stream.match(/.*?\*\//);
    if (state.isInComment) stream.skipToEnd();
    return "comment";
  }
  if (stream.eatSpace()) return null;
  if (stream.match("//")) {
    stream.skipToEnd();
    return "comment";
  }
  if (stream.match("/*")) {
    state.isInComment = true;
    return "comment";
  }
  if (stream.match(/"(?:[^"\\]|\\.)*"?/)) return "string";
  if (stream.match(/\$[A-Za-z_]\w*/)) return "variableName";
  if (stream.match(/@[A-Za-z_]\w*/)) return "meta";
  if (stream.match(/\d+(?:\.\d+)?/)) return "number";
  const name = stream.match(/[A-Za-z_]\w*/);
  if (name) return classify(name[0], stream);
  stream.next();
  return "operator";
}

function classify(name, stream) {
  if (scalars.has(name) || /^[A-Z]/.test(name)) return "typeName";
  if (functions.has(name) && stream.peek() === "(") return "function";
  return words.has(name) ? "keyword" : "propertyName";
}

const language = StreamLanguage.define({
  startState: () => ({ isInComment: false }),
  token: readToken,
  languageData: {
    commentTokens: { line: "//" },
    closeBrackets: { brackets: ["(", "[", "{", '"'] },
  },
  tokenTable: { function: tags.function(tags.variableName) },
});

const style = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-word)" },
  { tag: tags.typeName, color: "var(--code-type)" },
  { tag: tags.variableName, color: "var(--code-name)" },
  {
    tag: tags.function(tags.variableName),
    color: "var(--code-name)",
    fontWeight: "600",
  },
  { tag: tags.string, color: "var(--code-text)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-note)", fontStyle: "italic" },
  { tag: tags.meta, color: "var(--code-number)" },
]);

export const gqLanguage = [language, syntaxHighlighting(style)];
