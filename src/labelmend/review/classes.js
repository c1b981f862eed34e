// The search for a class: a combobox that is filtered as one types, and the numbered classes.

import { find, make, named } from "./parts.js";

const MOST = 30;

export class ClassSearch {
  /** `choose` gets the position of a class; `leave` brings the focus back. */
  constructor(classes, choose, leave) {
    this.classes = classes;
    this.choose = choose;
    this.leave = leave;
    this.input = find("search");
    this.list = find("found");
    this.places = [];
    this.at = 0;
    this.folded = classes.map((name) => name.toLocaleLowerCase());
    this.input.addEventListener("input", () => this.filter());
    this.input.addEventListener("focus", () => this.filter());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.key(event));
  }

  filter() {
    const wanted = this.input.value.trim().toLocaleLowerCase();
    const begin = [], within = [];
    for (let place = 0; place < this.classes.length && begin.length < MOST; place += 1) {
      const at = this.folded[place].indexOf(wanted);
      if (at === 0) begin.push(place);
      else if (at > 0 && within.length < MOST) within.push(place);
    }
    this.places = [...begin, ...within].slice(0, MOST);
    this.at = 0;
    this.list.replaceChildren(...this.places.map((place, number) => {
      const option = make("li", { role: "option", id: `class-${number}` }, named(this.classes[place], "span"));
      option.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        this.take(place);
      });
      return option;
    }));
    this.show(true);
    this.mark();
  }

  show(open) {
    this.list.hidden = !open || !this.places.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    if (this.list.hidden) this.input.removeAttribute("aria-activedescendant");
  }

  mark() {
    [...this.list.children].forEach((option, number) => {
      option.setAttribute("aria-selected", String(number === this.at));
      if (number === this.at) {
        this.input.setAttribute("aria-activedescendant", option.id);
        option.scrollIntoView({ block: "nearest" });
      }
    });
  }

  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && this.places.length) {
      this.at = (this.at + steps[event.key] + this.places.length) % this.places.length;
      this.show(true);
      this.mark();
    } else if (event.key === "Enter" && this.places.length && !this.list.hidden) {
      this.take(this.places[this.at]);
    } else if (event.key === "Escape") {
      this.close();
      this.leave();
    } else {
      return;
    }
    event.preventDefault();
  }

  take(place) {
    this.close();
    this.leave();
    this.choose(place);
  }

  close() {
    this.input.value = "";
    this.show(false);
  }
}

/** Buttons for the numbered classes: 1 to 9, then 0. */
export function showLikely(list, likely, given, classes, choose) {
  const buttons = likely.map((place, number) => {
    const key = String((number + 1) % 10);
    const button = make("button", { type: "button", "aria-keyshortcuts": key, class: place === given ? "given" : null },
      make("kbd", {}, key), " ", named(classes[place], "span"), place === given ? make("span", { class: "unseen" }, ", as given") : null);
    button.addEventListener("click", () => choose(place));
    return make("li", {}, button);
  });
  list.replaceChildren(...buttons);
}
