// One sample, large: the original, its labels, and the samples most like it.

import { find, make, named, percent, worded } from "./parts.js";

const KEPT = 40;
const pictures = new Map();

/** The large picture of a sample, fetched once and kept for a while; it may still be loading. */
export function picture(row) {
  if (!pictures.has(row)) {
    const image = new Image();
    image.decoding = "async";
    image.addEventListener("error", () => { image.dataset.failed = "yes"; });
    image.src = `/picture/${row}/large`;
    pictures.set(row, image);
    if (pictures.size > KEPT) pictures.delete(pictures.keys().next().value);
  }
  return pictures.get(row);
}

export const forgetPictures = () => pictures.clear();

function small(row, alt) {
  const image = make("img", { src: `/picture/${row}/small`, alt, loading: "lazy" });
  image.addEventListener("load", () => pixelated(image));
  image.addEventListener("error", () => image.replaceWith(make("span", { class: "blank" }, alt)));
  return image;
}

const pixelated = (image) => image.classList.toggle("small", Math.max(image.naturalWidth, image.naturalHeight) < 64);

function shownPicture(sample, opening) {
  const frame = make("button", { type: "button", class: "frame", id: "zoom", "aria-pressed": "false", "aria-keyshortcuts": "Z", "aria-label": `Sample ${sample.id}: show the picture at full size` });
  frame.addEventListener("click", () => zoom());
  const kept = () => {
    const image = make("img", { src: `/picture/${sample.row}/small`, alt: "" });
    image.addEventListener("load", () => pixelated(image));
    image.addEventListener("error", () => image.remove());
    return image;
  };
  if (opening) {
    // what the run kept is there before the original; asking for that would keep the browser's few connections busy
    frame.append(kept());
    return frame;
  }
  const large = picture(sample.row);
  large.alt = "";
  const settle = () => {
    pixelated(large);
    frame.replaceChildren(large);
  };
  const fail = () => make("p", { class: "missing" }, "There is no picture of this sample here; its id is ", named(sample.id), ".");
  if (large.complete && large.naturalWidth) settle();
  else if (large.complete && large.dataset.failed) return fail();
  else {
    frame.append(kept());
    large.addEventListener("load", settle, { once: true });
    large.addEventListener("error", () => frame.replaceWith(fail()), { once: true });
  }
  return frame;
}

export function zoom() {
  const frame = find("zoom");
  if (frame) frame.setAttribute("aria-pressed", String(frame.getAttribute("aria-pressed") !== "true"));
}

function shownText(sample) {
  const parts = sample.text.map(([part, loud]) => (loud ? make("mark", {}, part) : part));
  const cut = sample.cut ? make("span", { class: "aside" }, ` … and ${sample.cut.toLocaleString("en")} characters more`) : null;
  return make("p", { class: "writing text", dir: "auto", tabindex: "0", role: "group", "aria-label": "The text" }, ...parts, cut);
}

function swatch(kind) {
  return make("i", { class: kind, "aria-hidden": "true" });
}

const short = (value) => Number(value.toPrecision(3)).toString();

function shownBars(sample, classes) {
  if (!sample.bars.length) return null;
  const rows = sample.bars.map((bar) => {
    const word = bar.word !== undefined; // a category, with the shares of both classes that have it, in percent
    const line = make("span", { class: word ? "spread share" : "spread", "aria-hidden": "true" });
    if (!word) line.style.setProperty("--at", `${bar.at}%`);
    for (const kind of ["given", "rival"]) {
      const range = swatch(kind);
      const [from, to] = word ? [0, bar[kind]] : bar[kind];
      range.style.setProperty("--from", `${from}%`);
      range.style.setProperty("--to", `${to}%`);
      line.append(range);
    }
    const ranges = [["given", sample.given], ["rival", sample.rival]].map(([kind, place]) => {
      const said = word ? `: ${short(bar[kind])} %` : `: ${short(bar[`${kind}_range`][0])} to ${short(bar[`${kind}_range`][1])}`;
      return make("span", {}, swatch(kind), named(classes[place] ?? "", "span"), said);
    });
    const value = word ? named(bar.word) : make("b", {}, short(bar.value));
    return make("li", {}, make("span", { class: "name" }, named(bar.name, "span"), " ", value), line, make("span", { class: "ranges" }, ...ranges));
  });
  return make("div", {}, make("h3", {}, "Unusual for ", named(classes[sample.given])), make("ul", { class: "bars" }, ...rows),
    make("p", { class: "aside" }, "The line is the sample; a bar under it is the middle 80 % of a class, and a percentage how much of a class has the same word."));
}

function shownCells(sample, classes) {
  const head = make("tr", {}, make("th", { scope: "col" }, "column"), make("th", { scope: "col" }, "this sample"));
  for (const [kind, label, like] of [["given", sample.given, sample.like_given], ["rival", sample.rival, sample.like_rival]]) {
    if (like.length) head.append(make("th", { scope: "colgroup", colspan: like.length }, "most like it: ", swatch(kind), named(classes[label] ?? "", "span")));
  }
  const rows = sample.cells.map(([name, unusual, values]) =>
    make("tr", { class: unusual ? "unusual" : null }, make("th", { scope: "row", class: "text" }, name), ...values.map((value) => make("td", { class: "text" }, value))));
  const hidden = sample.columns - sample.cells.length;
  return make("div", {}, shownBars(sample, classes),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "The values" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows))),
    hidden > 0 ? make("p", { class: "aside" }, `and ${hidden} columns more`) : null);
}

function shownLike(like, label, classes, kind) {
  if (!like.length || label == null) return null;
  const items = like.map((near) => make("li", {}, kind === "picture" ? small(near.row, `sample ${near.id}`) : make("p", { class: "text", dir: "auto" }, near.text || near.id)));
  return make("div", {}, make("h3", {}, "Most like it, labelled ", named(classes[label])), make("ul", {}, ...items));
}

function shownSample(sample, classes, opening) {
  if (sample.kind === "picture") return shownPicture(sample, opening);
  if (sample.kind === "text" && sample.text.length) return shownText(sample);
  if (sample.kind === "cells" && sample.cells.length) return shownCells(sample, classes);
  if (sample.kind === "unknown") return make("p", { class: "missing" }, "The data set is being opened …");
  return make("p", { class: "missing" }, "Only the id of this sample is known here: ", named(sample.id), ".");
}

export function opinions(decided, classes) {
  if (!decided) return [];
  return decided.opinions.map(([reviewer, decision, label]) =>
    make("li", {}, named(reviewer || "somebody"), ": ", named(worded(decision, label, classes), "span")));
}

/** Put a sample into the page. */
export function showOne(sample, start, { blind = false, opening = false } = {}) {
  const { classes, verdicts } = start;
  const suggested = sample.suggested !== sample.given;
  const question = ["Labelled ", named(classes[sample.given], suggested ? "del" : "b")];
  if (suggested) question.push(make("span", { class: "arrow", "aria-hidden": "true" }, " → "), make("span", { class: "unseen" }, ", suggested "), named(classes[sample.suggested], "ins"));
  find("question").replaceChildren(...question);
  const meter = make("span", { class: "meter", "aria-hidden": "true" });
  meter.style.setProperty("--v", sample.probability);
  find("doubt").replaceChildren(meter, `wrong with probability ${sample.probability.toFixed(3)}`, make("span", { class: `badge ${verdicts[sample.verdict]}` }, verdicts[sample.verdict]));
  find("sample").replaceChildren(shownSample(sample, classes, opening));
  const said = opinions(sample.decided, classes);
  find("opinions").hidden = !said.length || blind;
  find("opinions").replaceChildren(make("h3", {}, sample.decided?.conflict ? "Reviewers disagree" : "Decided"), make("ul", {}, ...said));
  const beside = sample.kind === "cells" ? [] : [shownLike(sample.like_rival, sample.rival, classes, sample.kind), shownLike(sample.like_given, sample.given, classes, sample.kind)];
  find("beside").replaceChildren(...beside.filter(Boolean));
  const sure = suggested ? `the suggestion is right with probability ${sample.confidence.toFixed(3)}` : `the label is right with probability ${sample.confidence.toFixed(3)}`;
  find("facts").replaceChildren(named(sample.id, "span"), ` · ${sure}${sample.here ? "" : " · not in the data set any more"}`);
}

/** A sample in a sentence, for those who hear the page. */
export function spoken(sample, classes) {
  const suggestion = sample.suggested === sample.given ? "no suggestion" : `suggested ${classes[sample.suggested]}`;
  return `${sample.id}: labelled ${classes[sample.given]}, ${suggestion}, wrong with probability ${percent(sample.probability, 0)}.`;
}
