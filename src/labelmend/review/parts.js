// What the other scripts share: elements made of text, never of markup, and questions to the server.

export const find = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** The name of a class or a sample, which may be anything. */
export const named = (name, tag = "b") => make(tag, { class: "text", dir: "auto" }, name === "" ? "(empty)" : name);

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The server's reply to a question or, with a body, to an order. */
export async function ask(path, body) {
  const order = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const reply = await fetch(path, body === undefined ? {} : order);
  const said = await reply.json().catch(() => ({ error: "the server's reply cannot be read" }));
  if (!reply.ok) throw new Refused(reply.status, said.error ?? "the server refused");
  return said;
}

export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
export const count = (number) => number.toLocaleString("en");

/** The words of a decision, for people. */
export function worded(decision, label, classes) {
  switch (decision) {
    case "keep": return "right as given";
    case "relabel": return classes[label] ?? "another class";
    case "other": return "none of these classes";
    case "bad": return "bad sample";
    default: return "skipped";
  }
}

/** What is kept in this browser, which may forbid that. */
export const memory = {
  get(name) {
    try {
      return sessionStorage.getItem(name) ?? localStorage.getItem(name);
    } catch {
      return null;
    }
  },
  set(name, value, { longer = false } = {}) {
    try {
      sessionStorage.setItem(name, value);
      if (longer) localStorage.setItem(name, value);
    } catch { /* then it is asked again */ }
  },
};
