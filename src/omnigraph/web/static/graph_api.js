/** The routes of one graph. A state is `{branch}` or `{snapshot}`, as in requests. */
import { request, requestLines } from "./api_client.js";

export function askSession(signal) {
  return request("GET", "/session", { signal });
}

export function createGraphApi(graph) {
  const base = `/graphs/${encodeURIComponent(graph)}`;
  const get = (path, query, signal) => request("GET", base + path, { query, signal });
  const post = (path, body, signal) => request("POST", base + path, { body, signal });
  return {
    listTypes: (state, signal) => get("/schema/types", state, signal),
    readSchema: (state, signal) => get("/schema", state, signal),
    applySchema: (body) => post("/schema/apply", body),
    listBranches: (signal) => get("/branches", {}, signal),
    createBranch: (name, from) => post("/branches", { name, from }),
    deleteBranch: (name) => request("DELETE", `${base}/branches/${encodeURIComponent(name)}`),
    listTags: (signal) => get("/tags", {}, signal),
    createTag: (name, at) => post("/tags", { name, at }),
    listCommits: (branch, limit, signal) => get("/commits", { branch, limit }, signal),
    readCommit: (id, signal) => get(`/commits/${encodeURIComponent(id)}`, {}, signal),
    readEntity: (state, entity, signal) => get("/entity", { ...state, ...entity }, signal),
    blame: (entity, signal) => post("/blame", entity, signal),
    history: (entity, signal) => requestLines("POST", `${base}/history`, { body: entity, signal }),
    diff: (body, signal) => requestLines("POST", `${base}/diff`, { body, signal }),
    query: (state, text, params, signal) =>
      post("/query", { ...state, query: text, params }, signal),
    runRead: (body, signal) => post("/query", body, signal),
    runMutation: (body) => post("/mutate", body),
    explain: (body, signal) => post("/explain", body, signal),
    check: (state, text, signal) => post("/query/check", { ...state, query: text }, signal),
    planMerge: (body, signal) => post("/branches/merge/plan", body, signal),
    merge: (body) => post("/branches/merge", body),
    listProposals: (status, signal) => get("/proposals", { status }, signal),
    openProposal: (body) => post("/proposals", body),
    readProposal: (number, signal) => get(`/proposals/${number}`, {}, signal),
    planProposal: (number, signal) => get(`/proposals/${number}/plan`, {}, signal),
    diffProposal: (number, body, signal) =>
      requestLines("POST", `${base}/proposals/${number}/diff`, { body, signal }),
    changeProposal: (number, verb, body) => post(`/proposals/${number}/${verb}`, body),
    listStoredQueries: (signal) => get("/queries", {}, signal),
    listDashboards: (signal) => get("/dashboards", {}, signal),
    readStored: (name, body, signal) =>
      post(`/queries/${encodeURIComponent(name)}`, { ...body, expect_mutation: false }, signal),
    invoke: (name, body) => post(`/queries/${encodeURIComponent(name)}`, body),
    listIndexes: (branch, signal) => get("/indexes", { branch }, signal),
    listRuns: (signal) => get("/pipelines/runs", {}, signal),
    readRun: (pipeline, id, signal) =>
      get(`/pipelines/${encodeURIComponent(pipeline)}/runs/${encodeURIComponent(id)}`, {}, signal),
    readRejected: (pipeline, id, target, signal) =>
      get(
        `/pipelines/${encodeURIComponent(pipeline)}/runs/${encodeURIComponent(id)}/rejects`,
        { target },
        signal,
      ),
    readSnapshot: (state, signal) => get("/snapshot", state, signal),
  };
}
