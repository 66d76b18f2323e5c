/** Rows and columns. A column is `{name, title, cell(row), isNumber, isFit, sort}`. */
import { html } from "../../vendor/preact.js";
import { Value } from "./value.js";

export function DataTable({ columns, rows, label, keyOf, sorted, onSort }) {
  const mark = (column) => (sorted?.by !== column.name ? "" : sorted.isDown ? " ↓" : " ↑");
  const head = (column) => {
    const title = column.title ?? column.name;
    if (!onSort || !column.sort) return title;
    return html`<button type="button" onClick=${() => onSort(column.name)}>
      ${title}<span aria-hidden="true">${mark(column)}</span>
    </button>`;
  };
  const direction = (column) =>
    sorted?.by !== column.name ? null : sorted.isDown ? "descending" : "ascending";
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${label}>
    <table>
      <thead>
        <tr>
          ${columns.map(
            (column) =>
              html`<th
                key=${column.name}
                class=${classOf(column)}
                scope="col"
                aria-sort=${direction(column)}
              >
                ${head(column)}
              </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row, at) =>
            html`<tr key=${keyOf ? keyOf(row) : at}>
              ${columns.map(
                (column) =>
                  html`<td key=${column.name} class=${classOf(column)}>
                    <div class="cell">
                      ${
                        column.cell
                          ? column.cell(row)
                          : html`<${Value} value=${row[column.name]} />`
                      }
                    </div>
                  </td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function classOf(column) {
  return `${column.isNumber ? "number" : ""} ${column.isFit ? "fit" : ""}`.trim() || null;
}
