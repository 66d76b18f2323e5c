/** Keys: `g` and a letter opens a page, `/` the search, `?` lists them. */
import { useEffect } from "../vendor/preact.js";
import { navigate } from "./navigation.js";
import { PAGES } from "./pages.js";

const SECOND_KEY_MS = 1200;

function isTyping(event) {
  const target = event.composedPath()[0];
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

export function useKeys(address, showKeys) {
  useEffect(() => {
    let first = 0;
    const handle = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      const isSecond = Date.now() - first < SECOND_KEY_MS;
      first = 0;
      if (event.key === "?") showKeys();
      else if (event.key === "/") navigate(address("search"));
      else if (event.key === "g") first = Date.now();
      else {
        const page = isSecond ? PAGES.find((each) => each.key === event.key) : undefined;
        if (page === undefined) return;
        navigate(address(page.name));
      }
      event.preventDefault();
    };
    addEventListener("keydown", handle);
    return () => removeEventListener("keydown", handle);
  }, [address, showKeys]);
}
