/** The numbers of a chart: its values as they are drawn, and the ticks of an axis. */

/** Long integers are drawn as near as a number comes; what is not a number is not drawn. */
export function toNumber(value) {
  if (value === null || value === undefined) return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** An axis from zero, or below it, with about `count` ticks at round numbers. */
export function buildAxis(values, count) {
  const known = values.filter((value) => value !== null);
  const low = Math.min(0, ...known);
  const high = Math.max(0, ...known);
  const span = high - low || 1;
  const step = roundStep(span / count);
  const first = Math.floor(low / step);
  const last = Math.max(Math.ceil(high / step), first + 1);
  const ticks = [];
  // Multiples, so that no error of rounding adds up.
  for (let at = first; at <= last; at += 1) ticks.push(at * step);
  return { low: first * step, high: last * step, ticks };
}

function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  const factor = [1, 2, 5, 10].find((each) => each * power >= step) ?? 10;
  return factor * power;
}
