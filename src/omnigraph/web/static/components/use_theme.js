/** The theme of now, for what is not coloured by a style sheet. */
import { useEffect, useState } from "../../vendor/preact.js";
import { readTheme, watchTheme } from "../theme.js";

export function useTheme() {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => watchTheme(() => setTheme(readTheme())), []);
  return theme;
}
