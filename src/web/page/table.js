// SPDX-License-Identifier: Apache-2.0
// A table that is searched, sorted and shown a page at a time. Rows keep their elements from one update to the next, so
// the focus, what is selected and what is open stay where they are.
import { el, setText } from "./dom.js";

const ROWS_SHOWN = 25;
let made = 0;

export class Table {
  // `columns`: {title, value(row): what it is sorted by, show(row, cell): sets the cell, number, name}.
  // `options`: key(row), empty: what is said without rows, search(row): its text, rows: how many are shown at a time,
  // more(row): an element below the row, which a button of the name moreName opens.
  constructor(place, caption, columns, options) {
    this.columns = columns;
    this.options = { rows: ROWS_SHOWN, ...options };
    this.sorted = { by: options.sortBy ?? -1, descending: options.descending ?? false };
    this.first = 0;
    this.wanted = "";
    this.shown = new Map();
    this.open = new Set();
    this.rows = [];
    this.body = el("tbody");
    this.heads = columns.map((column, i) =>
      el("th", { scope: "col", class: column.number && "number" },
        column.value ? el("button", { type: "button", onclick: () => this.sort(i) }, column.title) : column.title));
    if (options.more) this.heads.push(el("th", { scope: "col" }, el("span", { class: "unseen" }, "More")));
    this.nothing = el("p", { class: "empty" });
    this.table = el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, ...this.heads)), this.body);
    this.pager = this.makePager(caption);
    place.replaceChildren(...(options.search ? [this.makeSearch(caption)] : []), el("div", { class: "wide" }, this.table), this.nothing,
      this.pager.element);
  }

  makeSearch(caption) {
    const id = `search-${++made}`;
    const input = el("input", { id, type: "search", autocomplete: "off", spellcheck: "false" });
    input.addEventListener("input", () => {
      this.wanted = input.value.toLowerCase();
      this.first = 0;
      this.draw();
    });
    return el("p", { class: "tools" }, el("label", { for: id }, `Search in ${caption.toLowerCase()}`), input);
  }

  makePager(caption) {
    const turn = (by) => () => {
      this.first = Math.max(0, this.first + by * this.options.rows);
      this.draw();
    };
    const back = el("button", { type: "button", onclick: turn(-1), "aria-label": `Earlier ${caption.toLowerCase()}` }, "←");
    const on = el("button", { type: "button", onclick: turn(1), "aria-label": `Further ${caption.toLowerCase()}` }, "→");
    const text = el("span", { role: "status" });
    return { element: el("p", { class: "pager" }, back, text, on), back, on, text };
  }

  sort(column) {
    const same = this.sorted.by === column;
    this.sorted = { by: column, descending: same ? !this.sorted.descending : Boolean(this.columns[column].number) };
    this.first = 0;
    this.draw();
  }

  update(rows) {
    this.rows = rows;
    this.draw();
  }

  select() {
    let rows = this.rows;
    if (this.wanted !== "") rows = rows.filter((row) => this.options.search(row).toLowerCase().includes(this.wanted));
    const column = this.columns[this.sorted.by];
    if (!column) return rows;
    const sign = this.sorted.descending ? -1 : 1;
    const compare = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    return [...rows].sort((a, b) => sign * compare(column.value(a), column.value(b)));
  }

  draw() {
    const rows = this.select();
    if (this.first >= rows.length) this.first = Math.max(0, Math.floor((rows.length - 1) / this.options.rows) * this.options.rows);
    const page = rows.slice(this.first, this.first + this.options.rows);
    this.heads.forEach((head, i) => {
      if (i === this.sorted.by) head.setAttribute("aria-sort", this.sorted.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      const button = head.querySelector("button");
      if (button) setText(button, this.columns[i].title + (i !== this.sorted.by ? "" : this.sorted.descending ? " ↓" : " ↑"));
    });
    this.place(page);
    this.table.hidden = page.length === 0;
    this.nothing.hidden = page.length !== 0;
    setText(this.nothing, this.wanted === "" ? this.options.empty : `Nothing of ${this.rows.length} has “${this.wanted}” in it.`);
    this.pager.element.hidden = rows.length <= this.options.rows;
    setText(this.pager.text, `${this.first + 1} to ${this.first + page.length} of ${rows.length}`);
    this.pager.back.disabled = this.first === 0;
    this.pager.on.disabled = this.first + page.length >= rows.length;
  }

  place(page) {
    const focused = document.activeElement;
    const before = this.shown;
    this.shown = new Map();
    const wanted = [];
    for (const row of page) {
      const key = this.options.key(row);
      const one = before.get(key) ?? this.makeRow(key);
      this.shown.set(key, one);
      one.row = row;
      this.columns.forEach((column, i) => column.show(row, one.cells[i]));
      wanted.push(one.element);
      if (this.options.more && this.open.has(key)) {
        one.more.firstChild.replaceChildren(this.options.more(row));
        wanted.push(one.more);
      }
    }
    const now = [...this.body.children];
    if (now.length !== wanted.length || now.some((element, i) => element !== wanted[i])) {
      this.body.replaceChildren(...wanted);
      if (focused !== document.activeElement && this.body.contains(focused)) focused.focus({ preventScroll: true });
    }
  }

  makeRow(key) {
    const cells = this.columns.map((column) => el("td", { class: column.number ? "number" : column.name ? "name" : undefined }));
    const one = { cells, element: el("tr", {}, ...cells) };
    if (!this.options.more) return one;
    const button = el("button", { type: "button", "aria-expanded": "false" }, this.options.moreName);
    button.addEventListener("click", () => {
      if (!this.open.delete(key)) this.open.add(key);
      button.setAttribute("aria-expanded", String(this.open.has(key)));
      this.draw();
    });
    one.element.append(el("td", {}, button));
    one.more = el("tr", {}, el("td", { colspan: cells.length + 1 }));
    return one;
  }
}

export const textColumn = (title, value, more = {}) => ({
  title, value, show: (row, cell) => setText(cell, String(value(row))), ...more,
});
export const numberColumn = (title, value, format, more = {}) => ({
  title, value, number: true, show: (row, cell) => setText(cell, format(value(row))), ...more,
});
