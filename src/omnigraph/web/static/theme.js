/** Light or dark: as the machine has it, until somebody chooses. */
const KEY = "omnigraph.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();

export function readTheme() {
  return localStorage.getItem(KEY) ?? (system.matches ? "dark" : "light");
}

function apply() {
  document.documentElement.dataset.theme = readTheme();
  for (const listener of listeners) listener();
}

export function toggleTheme() {
  localStorage.setItem(KEY, readTheme() === "dark" ? "light" : "dark");
  apply();
}

/** Calls back whenever colours have changed; the answer ends that. */
export function watchTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function startTheme() {
  system.addEventListener("change", apply);
  apply();
}
