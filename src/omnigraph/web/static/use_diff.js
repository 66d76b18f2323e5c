/** The difference of two states, read line by line, up to a bound. */
import { useLoad } from "./use_load.js";

export const CHANGES_MAX = 2_000;

export function useDiff(api, body) {
  return useLoad(
    async (signal) => {
      if (body === null) return null;
      const lines = api.diff(body, signal);
      const { value: header } = await lines.next();
      const changes = [];
      for await (const change of lines) {
        if (changes.length === CHANGES_MAX) return { header, changes, isCut: true };
        changes.push(change);
      }
      return { header, changes, isCut: false };
    },
    [api, JSON.stringify(body)],
  );
}
