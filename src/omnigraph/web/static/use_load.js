/** What a page shows comes from requests: under way, failed, or there. */
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";

/**
 * Runs `load(signal)` whenever a value of `inputs` changes; a request that is no longer wanted is
 * ended. The data of the request before stays until the next is there, so that nothing flickers.
 */
export function useLoad(load, inputs) {
  const [state, setState] = useState({ data: null, error: null, isBusy: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    setState((before) => ({ ...before, isBusy: true }));
    load(ending.signal).then(
      (data) => ending.signal.aborted || setState({ data, error: null, isBusy: false }),
      (error) => ending.signal.aborted || setState({ data: null, error, isBusy: false }),
    );
    return () => ending.abort();
  }, [...inputs, round]);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  return { ...state, reload };
}

/** Something that is done when it is asked for, such as a write: one at a time. */
export function useAction(act) {
  const [state, setState] = useState({
    data: null,
    error: null,
    isBusy: false,
  });
  const running = useRef(0);
  const run = async (...given) => {
    const turn = ++running.current;
    setState((before) => ({ ...before, error: null, isBusy: true }));
    let next;
    try {
      next = { data: await act(...given), error: null, isBusy: false };
    } catch (error) {
      next = { data: null, error, isBusy: false };
    }
    if (turn === running.current) setState(next);
    return next;
  };
  const clear = () => {
    running.current += 1;
    setState({ data: null, error: null, isBusy: false });
  };
  return { ...state, run, clear };
}
