// Thirty samples at a time, to be selected and answered together.

import { find, make, named, worded } from "./parts.js";

export class Grid {
  /** `closer` opens one sample; `changed` is told when another card is current or selected. */
  constructor(start, { closer, changed }) {
    this.start = start;
    this.closer = closer;
    this.changed = changed;
    this.box = find("cards");
    this.samples = [];
    this.selected = new Set();
    this.done = new Map();
    this.at = 0;
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  fill(samples) {
    this.samples = samples;
    this.selected.clear();
    this.done.clear();
    this.at = 0;
    this.box.replaceChildren(...samples.map((sample, place) => this.card(sample, place)));
    this.refresh();
  }

  card(sample, place) {
    const { classes } = this.start;
    const card = make("div", { role: "option", class: "card", id: `card-${place}` });
    if (sample.kind === "picture") {
      const image = make("img", { src: `/picture/${sample.row}/small`, alt: "" });
      image.addEventListener("load", () => image.classList.toggle("small", Math.max(image.naturalWidth, image.naturalHeight) < 64));
      image.addEventListener("error", () => image.replaceWith(make("span", { class: "blank" })));
      card.append(image);
    } else if (sample.text) {
      card.append(make("span", { class: "snippet text", dir: "auto" }, sample.text));
    } else {
      card.append(...sample.cells.map(([name, value]) => make("span", { class: "cell text" }, make("span", { class: "aside" }, `${name} `), value)));
    }
    const suggested = sample.suggested !== sample.given;
    const labels = make("span", { class: "labels" }, named(classes[sample.given], suggested ? "del" : "b"));
    if (suggested) labels.append(make("span", { class: "arrow", "aria-hidden": "true" }, " → "), make("span", { class: "unseen" }, ", suggested "), named(classes[sample.suggested], "ins"));
    const meter = make("span", { class: "meter", "aria-hidden": "true" });
    meter.style.setProperty("--v", sample.probability);
    card.append(labels, make("span", { class: "line" }, meter, sample.probability.toFixed(2)), make("span", { class: "answer" }), make("span", { class: "id text" }, sample.id));
    card.addEventListener("click", () => {
      this.move(place, { focus: true });
      this.toggle(place);
    });
    card.addEventListener("dblclick", () => this.closer(sample));
    return card;
  }

  refresh() {
    [...this.box.children].forEach((card, place) => {
      const row = this.samples[place].row;
      card.setAttribute("aria-selected", String(this.selected.has(row)));
      card.tabIndex = place === this.at ? 0 : -1;
      const answer = this.done.get(row);
      card.classList.toggle("done", answer !== undefined);
      card.querySelector(".answer").textContent = answer === undefined ? "" : `✓ ${worded(answer[0], answer[1], this.start.classes)}`;
    });
    const open = this.samples.filter((sample) => !this.done.has(sample.row)).length;
    find("chosen").textContent = `${this.selected.size} selected, ${open} of ${this.samples.length} open`;
    this.changed();
  }

  get current() {
    return this.samples[this.at];
  }

  /** The samples that an answer is for: those selected or, if none is, the current one. */
  chosen() {
    const found = this.samples.filter((sample) => this.selected.has(sample.row));
    return found.length || !this.current ? found : [this.current];
  }

  /** Note answers; tells whether all samples have one. */
  answered(answers) {
    for (const [row, decision, label] of answers) this.done.set(row, [decision, label]);
    this.selected.clear();
    const next = this.samples.findIndex((sample) => !this.done.has(sample.row));
    if (next >= 0 && this.done.has(this.current?.row)) this.move(next, { focus: this.box.contains(document.activeElement) });
    this.refresh();
    return next < 0;
  }

  undone(rows) {
    for (const row of rows) this.done.delete(row);
    this.refresh();
  }

  toggle(place, on = !this.selected.has(this.samples[place]?.row)) {
    const sample = this.samples[place];
    if (!sample) return;
    if (on) this.selected.add(sample.row);
    else this.selected.delete(sample.row);
    this.refresh();
  }

  all() {
    const open = this.samples.filter((sample) => !this.done.has(sample.row));
    const every = open.every((sample) => this.selected.has(sample.row));
    this.selected = new Set(every ? [] : open.map((sample) => sample.row));
    this.refresh();
  }

  invert() {
    this.selected = new Set(this.samples.map((sample) => sample.row).filter((row) => !this.done.has(row) && !this.selected.has(row)));
    this.refresh();
  }

  move(place, { focus = false } = {}) {
    this.at = Math.min(Math.max(place, 0), Math.max(0, this.samples.length - 1));
    this.refresh();
    if (focus) this.focus();
  }

  focus() {
    this.box.children[this.at]?.focus();
  }

  columns() {
    const cards = [...this.box.children];
    const next = cards.findIndex((card) => card.offsetTop > cards[0].offsetTop);
    return next < 1 ? Math.max(1, cards.length) : next;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns(), ArrowUp: -this.columns(), Home: -this.samples.length, End: this.samples.length };
    if (event.key in steps) {
      if (event.shiftKey) this.toggle(this.at, true);
      this.move(this.at + steps[event.key], { focus: true });
      if (event.shiftKey) this.toggle(this.at, true);
    } else if (event.key === " ") {
      this.toggle(this.at);
    } else if (event.key === "Enter") {
      if (this.current) this.closer(this.current);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
