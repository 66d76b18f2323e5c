/**
 * Queries that the pages run. Values are always parameters; names come from the schema, and edges
 * are written as strings, which no word of the language can be mistaken for.
 */
const UNREADABLE = new Set(["blob", "vector"]);
const PARAMETER_TYPES = { Date: "Date", DateTime: "DateTime" };

/** What a query can return of a type: everything but blobs and vectors; first what names it. */
export function listReadable(type) {
  const readable = type.properties.filter((property) => !UNREADABLE.has(property.kind));
  const label = findLabel(type);
  const rankOf = (property) => (type.key?.includes(property.name) ? 0 : property === label ? 1 : 2);
  return readable.sort((one, other) => rankOf(one) - rankOf(other));
}

/** The column that names an entity to people: a title, a name, or its key. */
export function findLabel(type) {
  const texts = type.properties.filter((property) => property.kind === "string");
  const usual = ["name", "title", "label", "summary"];
  const found = usual.map((name) => texts.find((each) => each.name === name)).find(Boolean);
  return found ?? texts.find((each) => type.key?.includes(each.name)) ?? null;
}

/** How an edge type is written in a pattern. */
export function writeEdge(name) {
  return JSON.stringify(name.charAt(0).toLowerCase() + name.slice(1));
}

function writeBinding(type) {
  return type.kind === "edge" ? `$source $x:${writeEdge(type.name)} $target` : `$x: ${type.name}`;
}

export const OPERATORS = [
  { name: "=", title: "is", kinds: null },
  { name: "!=", title: "is not", kinds: null },
  { name: "contains", title: "contains", kinds: ["string"] },
  { name: "starts_with", title: "starts with", kinds: ["string"] },
  {
    name: ">=",
    title: "at least",
    kinds: ["int", "bigint", "float", "date", "datetime"],
  },
  {
    name: "<=",
    title: "at most",
    kinds: ["int", "bigint", "float", "date", "datetime"],
  },
  { name: "is null", title: "is null", kinds: null },
  { name: "is not null", title: "is not null", kinds: null },
];

/** The type of a parameter for a property, spelled in the language. */
function parameterTypeOf(property) {
  const type = property.type.replace(/\?$/, "");
  return type.startsWith("enum(") ? "String" : (PARAMETER_TYPES[type] ?? type);
}

/** A text of a form as a value of a property. */
export function parseTyped(property, text) {
  switch (property.kind) {
    case "float":
      return Number(text);
    case "bool":
      return text.trim().toLowerCase() === "true";
    case "int":
    case "bigint":
      return text.trim();
    default:
      return text;
  }
}

/** A page of the entities of a type; `columns` are aliases of its properties. */
export function buildPage(type, { filter = null, sort = null, limit, offset }) {
  // A key of one property is the id, which has a column already.
  const properties = listReadable(type).filter(
    ({ name }) => type.key?.length !== 1 || type.key[0] !== name,
  );
  const ends = type.kind === "edge" ? ["$x.@src as source", "$x.@dst as target"] : [];
  const items = [
    "$x.@id as id",
    ...ends,
    ...properties.map(({ name }, at) => `$x.${name} as c${at}`),
  ];
  const order = sort === null ? [] : [`$x.${sort.by}${sort.isDown ? " desc" : ""}`];
  const params = {};
  const declared = [];
  const conditions = [];
  if (filter !== null) {
    const { property, operator, text } = filter;
    const isUnary = operator.startsWith("is ");
    conditions.push(`    $x.${property.name} ${operator}${isUnary ? "" : " $value"}\n`);
    if (!isUnary) {
      declared.push(`$value: ${parameterTypeOf(property)}`);
      params.value = parseTyped(property, text);
    }
  }
  const text = `query page(${declared.join(", ")}) {
  match {
    ${writeBinding(type)}
${conditions.join("")}  }
  return { ${items.join(", ")} }
  order { ${[...order, "$x.@id"].join(", ")} }
  limit ${limit}
  offset ${offset}
}`;
  return { text, params, properties };
}

/** The neighbours of a node over one edge type; one more than the limit shows that there are. */
export function buildNeighbours(nodeType, { edge, direction, other }, limit) {
  const hop = writeEdge(edge.name);
  const pattern = direction === "out" ? `$a $e:${hop} $x` : `$x $e:${hop} $a`;
  return `query neighbours($id: String) {
  match {
    $a: ${nodeType}
    $x: ${other}
    $a.@id = $id
    ${pattern}
  }
  return { $e.@id as edge, $x }
  order { $e.@id }
  limit ${limit}
}`;
}

export function buildDegree(nodeType, { edge, direction, other }) {
  const hop = writeEdge(edge.name);
  const pattern = direction === "out" ? `$a $e:${hop} $x` : `$x $e:${hop} $a`;
  return `query degree($id: String) {
  match {
    $a: ${nodeType}
    $x: ${other}
    $a.@id = $id
    ${pattern}
  }
  return { count($e.@id) as edges }
}`;
}

/** The best entities of a type for some words in one property. */
export function buildWordSearch(type, property, limit) {
  return `query words($q: String) {
  match { $x: ${type.name} }
  return { $x, bm25($x.${property.name}, $q) as score }
  order { bm25($x.${property.name}, $q) }
  limit ${limit}
}`;
}

/** The nearest entities of a type to a text, which the server turns into a vector. */
export function buildVectorSearch(type, vector, limit) {
  return `query near($q: String) {
  match { $x: ${type.name} }
  return { $x, nearest($x.${vector.name}, $q) as score }
  order { nearest($x.${vector.name}, $q) }
  limit ${limit}
}`;
}

/** Both, joined by reciprocal ranks. */
export function buildHybridSearch(type, vector, property, limit) {
  const rank = `rrf(nearest($x.${vector.name}, $q), bm25($x.${property.name}, $q))`;
  return `query both($q: String) {
  match { $x: ${type.name} }
  return { $x, ${rank} as score }
  order { ${rank} }
  limit ${limit}
}`;
}

export function buildById(type) {
  return `query by_id($id: String) {
  match { $x: ${type.name}  $x.@id = $id }
  return { $x }
}`;
}
