/** Where the browser is: addresses below `/ui`, changed without loading the page again. */
import { html, useEffect, useState } from "../vendor/preact.js";

const listeners = new Set();

/** The place of now: the parts of the path after `/ui`, and the query string. */
export function readPlace() {
  const parts = location.pathname
    .split("/")
    .slice(2)
    .filter((part) => part !== "");
  return {
    parts: parts.map(decodePart),
    query: new URLSearchParams(location.search),
  };
}

/** A part that was typed may have a `%` which begins no escape: it is taken as it stands. */
function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function navigate(address, { isReplaced = false } = {}) {
  history[isReplaced ? "replaceState" : "pushState"](null, "", address);
  for (const listener of listeners) listener();
}

export function usePlace() {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const update = () => setPlace(readPlace());
    listeners.add(update);
    addEventListener("popstate", update);
    return () => {
      listeners.delete(update);
      removeEventListener("popstate", update);
    };
  }, []);
  return place;
}

/** An address below `/ui`; parts are encoded, and members of the query that are null left out. */
export function buildAddress(parts, query = {}) {
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const text = new URLSearchParams(given).toString();
  return `/ui/${path}${text === "" ? "" : `?${text}`}`;
}

export function Link({ to, children, ...rest }) {
  const follow = (event) => {
    const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0);
    if (!isPlain) return;
    event.preventDefault();
    navigate(to);
  };
  return html`<a href=${to} onClick=${follow} ...${rest}>${children}</a>`;
}
