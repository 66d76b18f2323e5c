/** Requests to the routes of the server, which are those of every other client. */
import { stringify } from "./formats.js";
import { readToken } from "./session_store.js";

/** An answer that is a failure: its status, and what its document says. */
export class ApiError extends Error {
  constructor(status, document) {
    super(document.error ?? `the server answered ${status}`);
    this.status = status;
    this.document = document;
  }

  get hint() {
    return this.document.hint ?? null;
  }

  /** Whether another token, or none, is needed. */
  get isSignedOut() {
    return this.status === 401;
  }
}

/** A digit more than a number of JavaScript can hold exactly. */
const LONG_NUMBER = /\d{16}/;

/** A document; integers that a number cannot hold become BigInt, so that no digit is lost. */
export function parseJson(text) {
  return LONG_NUMBER.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
}

function keepDigits(_key, value, context) {
  const isInexact = typeof value === "number" && !Number.isSafeInteger(value);
  return isInexact && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;
}

function buildHeaders(hasBody, more) {
  const token = readToken();
  return {
    ...(hasBody ? { "content-type": "application/json" } : {}),
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...more,
  };
}

function buildAddress(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const text = new URLSearchParams(given).toString();
  return text === "" ? path : `${path}?${text}`;
}

async function ask(method, path, { query, body, headers, signal } = {}) {
  const hasBody = body !== undefined;
  const response = await fetch(buildAddress(path, query), {
    method,
    headers: buildHeaders(hasBody, headers),
    body: hasBody ? stringify(body) : undefined,
    signal,
    cache: "no-store",
    credentials: "omit",
  });
  if (response.ok) return response;
  throw new ApiError(response.status, await readFailure(response));
}

async function readFailure(response) {
  try {
    return await response.json();
  } catch {
    return {};
  }
}

/** The document that a route answers. */
export async function request(method, path, options) {
  const response = await ask(method, path, options);
  return parseJson(await response.text());
}

/** The lines of a streamed answer, each as its document. Leaving the loop ends the request. */
export async function* requestLines(method, path, options = {}) {
  const ending = new AbortController();
  options.signal?.addEventListener("abort", () => ending.abort());
  const response = await ask(method, path, {
    ...options,
    signal: ending.signal,
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line !== "") yield parseJson(line);
    }
    if (rest !== "") yield parseJson(rest);
  } finally {
    ending.abort();
  }
}
