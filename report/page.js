"use strict";
// Sorts and filters tables. Without this script they are complete and in the order of the report.
const words = new Intl.Collator("en", { numeric: true });

// value is the number or the text that a cell is sorted by: a title has the exact number.
function value(cell, number) {
  const text = (cell.title || cell.textContent).trim();
  if (!number) return text;
  if (text === "exact") return Infinity;
  return parseFloat(text.replace(/,/g, ""));
}

function missing(x) {
  return x === "" || Number.isNaN(x);
}

function order(x, y) {
  if (missing(x) || missing(y)) return missing(x) - missing(y);
  return typeof x === "number" ? (x > y) - (x < y) : words.compare(x, y);
}

function sortBy(table, head, column) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const h of table.tHead.rows[0].cells) h.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [value(row.cells[column], head.classList.contains("n")), row]);
  rows.sort(([x], [y]) => (down && !missing(x) && !missing(y) ? order(y, x) : order(x, y)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sort")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(table, head, column));
    head.append(button);
  });
}

for (const filter of document.querySelectorAll(".filter")) {
  const input = filter.querySelector("input");
  const rows = document.getElementById(input.getAttribute("aria-controls")).tBodies[0].rows;
  filter.hidden = false;
  input.addEventListener("input", () => {
    const parts = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !parts.every((part) => text.includes(part));
      shown += !row.hidden;
    }
    filter.querySelector("output").value = parts.length ? `${shown} of ${rows.length} shown` : "";
  });
}

for (const button of document.querySelectorAll("button.all")) {
  const branches = document.getElementById(button.getAttribute("aria-controls")).querySelectorAll("details");
  button.hidden = branches.length === 0;
  button.addEventListener("click", () => {
    const open = [...branches].some((branch) => !branch.open);
    for (const branch of branches) branch.open = open;
    button.setAttribute("aria-expanded", open);
  });
}
