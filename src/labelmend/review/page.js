// The review page: what is fetched, shown and answered, and the keys for it.

import { ClassSearch, showLikely } from "./classes.js";
import { Grid } from "./grid.js";
import { forgetPictures, picture, showOne, spoken, zoom } from "./one.js";
import { showNumbers } from "./numbers.js";
import { Outbox } from "./outbox.js";
import { Refused, ask, count, find, make, memory, worded } from "./parts.js";

const AHEAD = 4, FETCHED = 6, THIRTY = 30, POLL = 4000, MOST_SEEN = 5000;
const page = crypto.getRandomValues(new Uint32Array(2)).join("-");
const FILTERS = { order: "teaches", shown: "undecided", verdict: "suspects", pair: "", least: "0", most: "1" };

let start; // what never changes
let state = {}; // how far the review is
let search, grid;
let mode = "one";
let ahead = []; // samples that come next
let back = []; // samples that were shown before
let current = null;
let left = 0;
let seen = new Set(); // rows that were shown under these filters
let passed = 0;
let round = 0; // filters count up, so that a late reply of old ones is dropped
let filling = null;
const outbox = new Outbox({ wish: () => stopAt(), told: (now) => showState(now), alarm: (text) => alarm(text) });
let orders = 0; // so that an undo that is sent again is done once

const reviewer = () => find("reviewer").value.trim() || start.reviewer;
const stopAt = () => Math.min(Math.max(Number(find("stop").value) / 100 || 0, 0), 1);
const say = (text) => { find("said").textContent = text; };
const alarm = (text) => { find("alarm").textContent = text; };
const className = (place) => start.classes[place];

// What to show ---------------------------------------------------------------------------------------------------

function wish() {
  const [given, suggested] = find("pair").value ? find("pair").value.split(" ").map(Number) : [null, null];
  const bound = (id, otherwise) => (find(id).value === "" ? otherwise : Math.min(Math.max(Number(find(id).value), 0), 1));
  return { order: find("order").value, shown: find("shown").value, verdict: find("verdict").value, given, suggested, least: bound("least", 0), most: bound("most", 1) };
}

async function fetchNext(howMany, cards = false) {
  const without = [...seen, ...ahead.map((sample) => sample.row)].slice(-MOST_SEEN);
  return ask("/api/queue", { wish: wish(), count: howMany, without, cards, reviewer: reviewer(), page });
}

async function fill() {
  if (filling || ahead.length >= AHEAD) return filling;
  const asked = round;
  filling = fetchNext(FETCHED).then((reply) => {
    if (asked !== round) return;
    left = reply.left;
    const known = new Set([...ahead, current].filter(Boolean).map((sample) => sample.row));
    ahead.push(...reply.samples.filter((sample) => !known.has(sample.row)));
    preload();
    showLeft();
  }).catch((error) => alarm(`Samples cannot be fetched: ${error.message}`)).finally(() => { filling = null; });
  return filling;
}

/** How a sample is shown: without the opinions of others where they should not sway, and small until originals are open. */
const look = () => ({ blind: find("shown").value === "mine", opening: (state.source ?? "opening") === "opening" });

function preload() {
  if (look().opening) return;
  for (const sample of ahead) if (sample.kind === "picture") picture(sample.row);
}

function showLeft() {
  find("left").textContent = `${count(left)} ${left === 1 ? "sample fits" : "samples fit"} these filters`;
}

function show(sample, { spokenFirst = "" } = {}) {
  current = sample;
  const isOne = mode === "one";
  find("one").hidden = !isOne || !sample;
  find("grid").hidden = isOne;
  find("end").hidden = !isOne || Boolean(sample);
  find("answers").hidden = isOne && !sample;
  if (!isOne) return;
  if (!sample) {
    showEnd(spokenFirst);
    return;
  }
  seen.add(sample.row);
  showOne(sample, start, look());
  showAnswers(sample);
  say(`${spokenFirst} ${spoken(sample, start.classes)}`.trim());
}

function showEnd(before) {
  find("again").hidden = !passed;
  find("end-text").textContent = `${count(state.decided ?? 0)} samples are decided.${passed ? ` ${count(passed)} were passed over without an answer.` : ""} Choose other filters to go on; labelmend apply writes the data set with these decisions.`;
  say(`${before} ${find("end-title").textContent}`.trim());
  settle();
}

function showAnswers(sample) {
  const many = mode === "grid" && grid.selected.size > 1 ? `${grid.selected.size} samples` : null;
  const suggested = sample.suggested !== sample.given;
  find("keep").querySelector("b").textContent = many ?? className(sample.given);
  find("take").querySelector("b").textContent = many ?? (suggested ? className(sample.suggested) : "none");
  find("take").disabled = !many && !suggested && mode === "one";
  showLikely(find("likely"), sample.likely, sample.given, start.classes, (place) => answer("relabel", place));
}

async function advance(spokenFirst = "") {
  const asked = round;
  if (current) back.push(current);
  if (back.length > 200) back.shift();
  if (!ahead.length) await fill();
  if (asked !== round) return;
  show(ahead.shift() ?? null, { spokenFirst });
  fill();
}

async function startOver() {
  round += 1;
  ahead = [];
  back = [];
  current = null;
  seen = new Set();
  passed = 0;
  filling = null;
  if (mode === "grid") await nextThirty();
  else await advance();
}

async function nextThirty() {
  const asked = round;
  passed += grid.samples.filter((sample) => !grid.done.has(sample.row)).length;
  const reply = await fetchNext(THIRTY, true);
  if (asked !== round) return;
  left = reply.left;
  showLeft();
  if (!reply.samples.length) {
    grid.fill([]);
    await setMode("one");
    return;
  }
  for (const sample of reply.samples) seen.add(sample.row);
  grid.fill(reply.samples);
  show(null);
  settle();
  say(`${reply.samples.length} samples. ${spoken(reply.samples[0], start.classes)}`);
}

async function setMode(wanted) {
  if (wanted === mode) return;
  mode = wanted;
  memory.set("mode", mode);
  find("mode").querySelector("span").textContent = mode === "grid" ? "One at a time" : "Grid of thirty";
  if (mode === "grid") {
    for (const sample of [current, ...ahead]) if (sample) seen.delete(sample.row);
    ahead = [];
    grid.fill([]);
    await nextThirty();
  } else {
    for (const sample of grid.samples) if (!grid.done.has(sample.row)) seen.delete(sample.row);
    grid.fill([]);
    current = null;
    await advance();
    settle();
  }
}

async function closer(sample) {
  for (const each of grid.samples) if (!grid.done.has(each.row)) seen.delete(each.row);
  mode = "one";
  memory.set("mode", mode);
  find("mode").querySelector("span").textContent = "Grid of thirty";
  show(await ask(`/api/sample/${sample.row}`));
  settle();
  fill();
}

// Answers --------------------------------------------------------------------------------------------------------

function answer(decision, label = null) {
  const samples = mode === "grid" ? grid.chosen() : [current].filter(Boolean);
  if (!samples.length) return;
  const answers = samples.map((sample) => answered(sample, decision, label)).filter(Boolean);
  if (!answers.length) {
    say("There is no suggestion; choose a class.");
    return;
  }
  const sample = current;
  const words = answers.length === 1 ? worded(answers[0][1], answers[0][2], start.classes) : `${answers.length} answers`;
  outbox.post({
    path: "/api/decide",
    body: { answers, reviewer: reviewer() },
    then: (reply) => heard(reply, samples),
    failed: () => { if (mode === "one") show(sample); else grid.undone(answers.map(([row]) => row)); },
  });
  left = Math.max(0, left - answers.length);
  showLeft();
  if (mode === "one") advance(`Answered: ${words}.`);
  else if (grid.answered(answers)) nextThirty();
  else say(`Answered: ${words}.`);
}

/** An answer for one sample: its row, the word of the decision and the class; null where there is nothing to take. */
function answered(sample, decision, label) {
  if (decision === "take") {
    return sample.suggested === sample.given ? null : [sample.row, "relabel", sample.suggested];
  }
  if (decision === "relabel") return label === sample.given ? [sample.row, "keep", null] : [sample.row, "relabel", label];
  return [sample.row, decision, null];
}

/** What the server made of an answer: somebody else may have said otherwise. */
function heard(reply, samples) {
  for (const sample of samples) sample.decided = reply.decided[sample.row] ?? null;
  const disputed = samples.filter((sample) => sample.decided?.conflict);
  if (disputed.length) {
    const [one] = disputed;
    const other = one.decided.opinions.find(([name]) => name !== reviewer());
    alarm(`${other[0] || "Somebody"} said otherwise about ${one.id}: ${worded(other[1], other[2], start.classes)}.`);
  }
}

function undo() {
  outbox.post({
    path: "/api/undo",
    body: { reviewer: reviewer(), order: `${page}-${orders += 1}` },
    then: (reply) => {
      if (!reply.rows.length) {
        say("There is nothing to undo.");
        return;
      }
      left += reply.rows.length;
      showLeft();
      if (mode === "grid" && grid.samples.some((sample) => reply.rows.includes(sample.row))) {
        grid.undone(reply.rows);
        say(`Undone: ${reply.rows.length} answers.`);
        return;
      }
      if (mode === "grid") {
        say(`Undone: ${reply.rows.length} answers.`);
        return;
      }
      back = back.filter((sample) => sample.row !== reply.rows[0]);
      if (current) ahead.unshift(current);
      show(reply.samples[0], { spokenFirst: "Undone." });
    },
  });
}

function passOver() {
  if (mode !== "one" || !current) return;
  if (!current.decided) passed += 1;
  advance();
}

function goBack() {
  if (mode !== "one" || !back.length) return;
  if (current) ahead.unshift(current);
  show(back.pop());
}

// Numbers --------------------------------------------------------------------------------------------------------

function showState(now) {
  const opened = state.source === "opening" && now.source !== "opening";
  state = now;
  showNumbers(now, reviewer(), showConflicts);
  if (opened) refetch();
}

function showConflicts() {
  find("shown").value = "conflicts";
  find("verdict").value = "any";
  filtered();
}

/** The originals are open now: what is on the page was made without them. */
async function refetch() {
  forgetPictures();
  const asked = round;
  const again = async (sample) => Object.assign(sample, await ask(`/api/sample/${sample.row}`));
  if (mode === "grid") {
    const cards = grid.samples;
    if (!cards.some((sample) => sample.kind !== "picture")) return;
    await Promise.all(cards.map(again));
    if (asked === round && mode === "grid" && !grid.done.size && !grid.selected.size) {
      const at = grid.at;
      grid.fill(cards.map((sample) => ({ ...sample, text: sample.text.map(([part]) => part).join("").slice(0, 280), cells: sample.cells.slice(0, 4).map(([name, , values]) => [name, values[0]]) })));
      grid.move(at);
    }
    return;
  }
  await Promise.all([current, ...ahead].filter(Boolean).map(again));
  if (asked !== round || mode !== "one" || !current) return;
  showOne(current, start, look());
  showAnswers(current);
  preload();
}

async function askState() {
  showState(await ask(`/api/state?${new URLSearchParams({ reviewer: reviewer(), wish: stopAt() })}`));
}

async function poll() {
  if (!document.hidden && outbox.empty) {
    try {
      await askState();
      if (find("alarm").textContent.startsWith("The server")) alarm("");
    } catch (error) {
      alarm(error instanceof Refused ? error.message : "The server does not answer; answers are kept here until it does.");
    }
  }
  setTimeout(poll, state.source === "opening" ? POLL / 8 : POLL);
}

// Controls -------------------------------------------------------------------------------------------------------

function filtered() {
  for (const name of Object.keys(FILTERS)) memory.set(`filter-${name}`, find(name).value);
  startOver();
}

function fillControls() {
  const options = (entries) => entries.map(([value, text]) => make("option", { value }, text));
  find("order").append(...options(Object.entries(start.orders)));
  find("shown").append(...options(Object.entries(start.shown)));
  find("verdict").append(...options([["suspects", "suspects"], ...start.verdicts.map((name) => [name, name]), ["any", "any"]]));
  find("pair").append(...options([["", "all"], ...start.pairs.map(([given, suggested, times]) => [`${given} ${suggested}`, `${className(given)} → ${given === suggested ? "unsure" : className(suggested)} (${count(times)})`])]));
  for (const [name, value] of Object.entries(FILTERS)) {
    const control = find(name);
    control.value = memory.get(`filter-${name}`) ?? value;
    if (control.selectedIndex === -1) control.value = value;
    control.addEventListener("change", filtered);
  }
  find("filters").addEventListener("submit", (event) => event.preventDefault());
  find("clear").addEventListener("click", () => {
    for (const [name, value] of Object.entries(FILTERS)) find(name).value = value;
    filtered();
  });
  find("reviewer").value = memory.get("reviewer") ?? start.reviewer;
  find("reviewer").addEventListener("change", () => memory.set("reviewer", reviewer(), { longer: false }));
  find("stop").value = memory.get("stop") ?? "1";
  find("stop").addEventListener("change", () => { memory.set("stop", find("stop").value); askState(); });
  find("letters").checked = memory.get("letters") !== "off";
  find("letters").addEventListener("change", () => memory.set("letters", find("letters").checked ? "on" : "off", { longer: true }));
  const wide = window.matchMedia("(min-width: 56rem)");
  const unfold = () => { find("tools").open = wide.matches; };
  wide.addEventListener("change", unfold);
  unfold();
  const clicks = { keep: () => answer("keep"), take: () => answer("take"), other: () => answer("other"), bad: () => answer("bad"), skip: () => answer("skip"), undo, mode: () => setMode(mode === "one" ? "grid" : "one"), help: () => find("keys").showModal(), more: nextThirty, again: startOver };
  for (const [id, work] of Object.entries(clicks)) find(id).addEventListener("click", () => work());
}

const LETTERS = {
  g: () => answer("keep"),
  s: () => answer("take"),
  x: () => answer("other"),
  b: () => answer("bad"),
  n: () => answer("skip"),
  u: undo,
  z: zoom,
  m: () => setMode(mode === "one" ? "grid" : "one"),
  f: () => { find("tools").open = true; find("order").focus(); },
  a: () => { if (mode === "grid") grid.all(); },
  i: () => { if (mode === "grid") grid.invert(); },
  "/": () => find("search").focus(),
  "?": () => find("keys").showModal(),
};

function typing(target) {
  return target.closest("select, textarea, dialog") || (target.closest("input") && target.type !== "checkbox");
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || find("keys").open) return;
  if (event.key === "Escape" && typing(event.target)) {
    home();
    return;
  }
  if (typing(event.target)) return;
  const letter = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const moves = { ArrowRight: passOver, ArrowLeft: goBack, PageDown: () => { if (mode === "grid") nextThirty(); } };
  if (letter in moves && !event.target.closest(".scroll, .writing")) {
    if (mode === "grid" && letter !== "PageDown") return;
    if (mode === "one" && letter === "PageDown") return;
    event.preventDefault();
    moves[letter]();
  } else if (find("letters").checked && (letter in LETTERS || /^[0-9]$/.test(letter))) {
    if (event.repeat) return; // a key that is held down is one answer
    event.preventDefault();
    if (letter in LETTERS) LETTERS[letter]();
    else number(Number(letter));
  }
}

function number(digit) {
  const sample = mode === "grid" ? grid.current : current;
  const place = sample?.likely[(digit + 9) % 10];
  if (place !== undefined) answer("relabel", place);
}

/** The focus where answers are given, also while samples are on their way. */
function home() {
  document.activeElement?.blur();
  if (mode === "grid") grid.focus();
  else [find("one"), find("end")].find((place) => !place.hidden)?.focus({ preventScroll: true });
}

/** The same, unless somebody is at the filters: they may not have chosen yet. */
function settle() {
  if (!find("tools").contains(document.activeElement)) home();
}

async function main() {
  if (new URLSearchParams(location.search).has("token")) {
    location.replace("/"); // the cookie is set, and the token need not stay in the address
    return;
  }
  start = await ask("/api/start");
  document.title = `labelmend review: ${start.run}`;
  find("run").textContent = start.run;
  fillControls();
  search = new ClassSearch(start.classes, (place) => answer("relabel", place), home);
  grid = new Grid(start, { closer, changed: () => { if (mode === "grid" && grid.current) showAnswers(grid.current); } });
  document.addEventListener("keydown", key);
  window.addEventListener("beforeunload", (event) => { if (!outbox.empty) event.preventDefault(); });
  await askState();
  setTimeout(poll, POLL / 8);
  if (memory.get("mode") === "grid") await setMode("grid");
  else await advance();
  home();
  document.documentElement.dataset.ready = "yes";
}

main().catch((error) => alarm(`The page cannot start: ${error.message}`));
