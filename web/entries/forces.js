export { default as iterate } from "graphology-layout-forceatlas2/iterate.js";
