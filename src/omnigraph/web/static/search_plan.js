/** Which queries a search runs: one for each text, each vector, or each pair of both. */
import {
  buildHybridSearch,
  buildVectorSearch,
  buildWordSearch,
  findLabel,
} from "./graph_queries.js";

const ROWS = 10;
// Texts that are worth reading are few; a graph with very many types is searched type by type.
const SEARCHES_MAX = 24;

function listTexts(type) {
  return type.properties.filter(
    (property) => property.kind === "string" && property.values === undefined,
  );
}

function listVectors(type) {
  return type.properties.filter((property) => property.kind === "vector");
}

export function listSearches(catalog, mode, only) {
  const types = catalog.nodes.filter((type) => only === "" || type.name === only);
  return types.flatMap((type) => planType(type, mode)).slice(0, SEARCHES_MAX);
}

function planType(type, mode) {
  const texts = listTexts(type);
  if (mode === "words") {
    return texts.map((property) => ({
      type,
      property,
      text: buildWordSearch(type, property, ROWS),
    }));
  }
  return listVectors(type).flatMap((vector) => {
    if (mode === "vectors") {
      return [{ type, property: vector, text: buildVectorSearch(type, vector, ROWS) }];
    }
    const source =
      texts.find((each) => each.name === vector.embed_source) ?? findLabel(type) ?? texts[0];
    if (source === undefined) return [];
    return [
      {
        type,
        property: source,
        text: buildHybridSearch(type, vector, source, ROWS),
      },
    ];
  });
}
