"use strict";
for (const header of document.querySelectorAll("table:not(.fixed) > thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  header.append(button);
  button.addEventListener("click", () => {
    const body = header.closest("table").tBodies[0];
    const column = header.cellIndex;
    const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const numeric = header.classList.contains("number");
    const key = (row) => (numeric ? row.cells[column].dataset.value : row.cells[column].textContent);
    const compare = (a, b) => (numeric ? a - b : a.localeCompare(b, undefined, { numeric: true }));
    const missing = (value) => value === undefined || value === "–";
    const rows = [...body.rows].sort((first, second) => {
      const [a, b] = [key(first), key(second)];
      return missing(a) || missing(b) ? missing(a) - missing(b) : sign * compare(a, b);
    });
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    body.append(...rows);
  });
}
