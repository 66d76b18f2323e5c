/** What can stand at the cursor: types after a colon, properties after a dot, edges, words. */
import { FUNCTIONS, KEYWORDS, SCALARS } from "./gq_words.js";

function lowerFirst(name) {
  return name.charAt(0).toLowerCase() + name.slice(1);
}

/** The node types of variables, as far as the text before the cursor shows them. */
export function inferVariables(text, catalog) {
  const found = new Map();
  for (const [, variable, type] of text.matchAll(/(\$\w+)\s*:\s*([A-Z]\w*)/g)) {
    if (catalog.find("node", type)) found.set(variable, catalog.find("node", type));
  }
  const hops = [
    ...text.matchAll(/(\$\w+)\s+(?:(\$\w+)\s*:\s*)?"?([a-z]\w*)"?(?:\{\d+,\d+\})?\s+(\$\w+)/g),
  ];
  // A chain of hops gives a type to one variable after the other.
  for (let round = 0; round < hops.length; round += 1) {
    for (const [, left, own, name, right] of hops) {
      const edge = catalog.edges.find((each) => lowerFirst(each.name) === name);
      if (edge === undefined) continue;
      if (own) found.set(own, edge);
      const isReversed = found.get(left)?.name === edge.target && edge.source !== edge.target;
      const [from, to] = isReversed ? [right, left] : [left, right];
      if (!found.has(from)) found.set(from, catalog.find("node", edge.source));
      if (!found.has(to)) found.set(to, catalog.find("node", edge.target));
    }
  }
  return found;
}

function completeProperty(context, catalog) {
  const word = context.matchBefore(/\$\w+\.@?\w*/);
  if (word === null) return null;
  const [variable] = word.text.split(".");
  const type = inferVariables(context.state.doc.toString(), catalog).get(variable);
  if (!type) return null;
  const ends = type.kind === "edge" ? ["@src", "@dst"] : [];
  return {
    from: word.from + variable.length + 1,
    options: [
      ...type.properties.map((each) => ({
        label: each.name,
        type: "property",
        detail: each.type,
      })),
      ...["@id", "@type", ...ends].map((label) => ({ label, type: "keyword" })),
    ],
    validFor: /^@?\w*$/,
  };
}

function completeType(context, catalog) {
  const word = context.matchBefore(
    /(?:\$\w+\s*:|(?:insert|update|delete|create|upsert|replace))\s*[A-Z]?\w*/,
  );
  if (word === null) return null;
  const typed = word.text.match(/[A-Z]?\w*$/)[0];
  const isParameter = /\(\s*[^)]*$/.test(context.state.sliceDoc(0, word.from).split("{").pop());
  const names = isParameter
    ? SCALARS
    : catalog.types
        .filter((type) => type.kind === "node" || !word.text.includes(":"))
        .map((type) => type.name);
  const start = /^(insert|update|delete|create|upsert|replace)$/.test(typed) ? "" : typed;
  return {
    from: context.pos - start.length,
    options: names.map((label) => ({ label, type: "type" })),
    validFor: /^\w*$/,
  };
}

function completeEdge(context, catalog) {
  const word = context.matchBefore(/\$\w+[ \t]+(?:\$\w+\s*:\s*)?[a-z]\w*/);
  if (word === null) return null;
  const typed = word.text.match(/[a-z]\w*$/)[0];
  return {
    from: context.pos - typed.length,
    options: [
      ...catalog.edges.map((edge) => ({
        label: lowerFirst(edge.name),
        type: "class",
        detail: `${edge.source} → ${edge.target}`,
      })),
      ...["in", "is", "contains", "starts_with", "and", "or", "as", "desc"].map((label) => ({
        label,
        type: "keyword",
      })),
    ],
    validFor: /^\w*$/,
  };
}

function completeVariable(context) {
  const word = context.matchBefore(/\$\w*/);
  if (word === null) return null;
  const names = new Set(context.state.doc.toString().match(/\$\w+/g));
  names.delete(word.text);
  return {
    from: word.from,
    options: [...names].map((label) => ({ label, type: "variable" })),
    validFor: /^\$\w*$/,
  };
}

function completeWord(context) {
  const word = context.matchBefore(/[a-z]\w*/);
  if (word === null && !context.explicit) return null;
  return {
    from: word?.from ?? context.pos,
    options: [
      ...KEYWORDS.map((label) => ({ label, type: "keyword" })),
      ...FUNCTIONS.map((label) => ({
        label,
        type: "function",
        apply: `${label}(`,
      })),
    ],
    validFor: /^\w*$/,
  };
}

export function createCompletion(readCatalog) {
  return (context) => {
    const catalog = readCatalog();
    return (
      completeProperty(context, catalog) ??
      completeType(context, catalog) ??
      completeEdge(context, catalog) ??
      completeVariable(context) ??
      completeWord(context)
    );
  };
}
