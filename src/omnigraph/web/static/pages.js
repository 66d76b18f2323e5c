/** The pages of a graph: their names in addresses, how the side lists them, and their modules. */
export const PAGES = [
  {
    name: "",
    title: "Overview",
    icon: "overview",
    key: "o",
    load: () => import("./pages/overview_page.js"),
  },
  {
    name: "search",
    title: "Search",
    icon: "search",
    key: "s",
    load: () => import("./pages/search_page.js"),
  },
  {
    name: "query",
    title: "Query",
    icon: "query",
    key: "q",
    load: () => import("./pages/query_page.js"),
  },
  {
    name: "explore",
    title: "Explore",
    icon: "explore",
    key: "e",
    load: () => import("./pages/explore_page.js"),
  },
];

/** Pages that are reached from others. */
const INNER = [
  { name: "types", title: "Type", load: () => import("./pages/type_page.js") },
  {
    name: "entities",
    title: "Entity",
    load: () => import("./pages/entity_page.js"),
  },
];

export function findPage(name) {
  return [...PAGES, ...INNER].find((page) => page.name === name) ?? null;
}
