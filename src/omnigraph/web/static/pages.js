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
  {
    name: "commits",
    title: "Commits",
    icon: "commits",
    key: "c",
    load: () => import("./pages/commits_page.js"),
  },
  {
    name: "branches",
    title: "Branches",
    icon: "branches",
    key: "b",
    load: () => import("./pages/branches_page.js"),
  },
  {
    name: "diff",
    title: "Diff",
    icon: "diff",
    key: "d",
    load: () => import("./pages/diff_page.js"),
  },
  {
    name: "merge",
    title: "Merge",
    icon: "merge",
    key: "m",
    load: () => import("./pages/merge_page.js"),
  },
  {
    name: "proposals",
    title: "Proposals",
    icon: "proposals",
    key: "r",
    load: () => import("./pages/proposals_page.js"),
  },
  {
    name: "schema",
    title: "Schema",
    icon: "schema",
    key: "h",
    load: () => import("./pages/schema_page.js"),
  },
  {
    name: "stored",
    title: "Stored queries",
    icon: "stored",
    key: "t",
    load: () => import("./pages/stored_page.js"),
  },
  {
    name: "dashboards",
    title: "Dashboards",
    icon: "dashboards",
    key: "a",
    load: () => import("./pages/dashboards_page.js"),
  },
  {
    name: "pipelines",
    title: "Pipelines",
    icon: "pipelines",
    key: "p",
    load: () => import("./pages/pipelines_page.js"),
  },
  {
    name: "upkeep",
    title: "Upkeep",
    icon: "upkeep",
    key: "u",
    load: () => import("./pages/upkeep_page.js"),
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
