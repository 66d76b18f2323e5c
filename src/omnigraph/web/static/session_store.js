/**
 * The token of this tab. It is kept in the tab alone: a cookie would be sent by pages of other
 * sites too, and what is stored for good outlives the person at the machine.
 */
const KEY = "omnigraph.token";

export function readToken() {
  return sessionStorage.getItem(KEY);
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}
