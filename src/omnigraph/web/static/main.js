/** Starts the pages. */
import { html, render } from "../vendor/preact.js";
import { App } from "./app.js";
import { startTheme } from "./theme.js";

startTheme();
render(html`<${App} />`, document.getElementById("app"));
