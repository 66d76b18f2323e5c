/** Values as people read them. */
const numbers = new Intl.NumberFormat("en");
const times = new Intl.DateTimeFormat("en-CA", {
  dateStyle: "short",
  timeStyle: "medium",
  hourCycle: "h23",
});
const STEPS = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function formatCount(count) {
  return numbers.format(count);
}

export function pluralize(count, word, plural = `${word}s`) {
  return `${formatCount(count)} ${count === 1 ? word : plural}`;
}

/** Microseconds since 1970 as a time of this machine. */
export function formatTime(microseconds) {
  return times.format(new Date(Number(microseconds) / 1000)).replace(",", "");
}

export function formatAge(microseconds) {
  const seconds = (Date.now() - Number(microseconds) / 1000) / 1000;
  for (const [unit, length] of STEPS) {
    if (seconds >= length) return relative.format(-Math.floor(seconds / length), unit);
  }
  return "just now";
}

/** The end of an id, which differs from commit to commit; its start is a time. */
export function shortenId(id) {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}

/** One line for a value of any type. */
export function formatValue(value) {
  switch (typeof value) {
    case "string":
      return value;
    case "object":
      return value === null ? "null" : stringify(value);
    default:
      return String(value);
  }
}

/** JSON; a BigInt is written as the integer that it is. */
export function stringify(value, indent) {
  return JSON.stringify(
    value,
    (_key, each) => (typeof each === "bigint" ? JSON.rawJSON(String(each)) : each),
    indent,
  );
}

/** What a change, a conflict or a commit is about, in a few words. */
export function nameOp(op) {
  return { insert: "added", update: "changed", delete: "removed" }[op] ?? op;
}
