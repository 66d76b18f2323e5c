/** The difference of two states, read line by line, up to a bound. */
import { useLoad } from "./use_load.js";

export const CHANGES_MAX = 2_000;

/** `open(signal)` begins the lines: first one of commits and counts, then one for each entity. */
export function useDiff(open, inputs) {
  return useLoad(async (signal) => {
    const lines = open(signal);
    const { value: header } = await lines.next();
    const changes = [];
    for await (const change of lines) {
      if (changes.length === CHANGES_MAX) return { header, changes, isCut: true };
      changes.push(change);
    }
    return { header, changes, isCut: false };
  }, inputs);
}
