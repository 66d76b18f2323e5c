import { h } from "preact";
import htm from "htm";

export { createContext, Fragment, h, render } from "preact";
export {
  useCallback,
  useContext,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "preact/hooks";
export const html = htm.bind(h);
