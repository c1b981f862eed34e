// How far the review is: counts, the estimate, what is left and how long that takes.

import { count, find, make, percent } from "./parts.js";

/** Show the state of the review to a reviewer; `lead` leads to the samples about which reviewers disagree. */
export function showNumbers(now, reviewer, lead) {
  const of = now.suspects || now.samples;
  const done = now.suspects ? now.suspects_decided : now.decided;
  find("bar").max = Math.max(1, of);
  find("bar").value = done;
  showCounts([`${count(done)} of ${count(of)} ${now.suspects ? "suspects" : "samples"} decided`, `${count(now.decided)} answers in all`], now.conflicts, lead);
  showEstimate(now);
  const others = Object.keys(now.reviewers).filter((name) => name !== reviewer);
  find("others").textContent = others.length ? `and ${others.join(", ")}` : "";
  find("notes").hidden = !now.notes.length;
  find("notes").replaceChildren(...now.notes.map((note) => make("p", {}, note)));
}

/** Written anew only where something changed: a button that has the focus keeps it. */
function showCounts(parts, conflicts, lead) {
  const counts = find("counts"), all = [...parts, conflicts].join(" ");
  if (counts.dataset.shown === all) return;
  counts.dataset.shown = all;
  counts.replaceChildren(parts.join(" · "));
  if (!conflicts) return;
  const button = make("button", { type: "button", class: "link" }, `${count(conflicts)} ${conflicts === 1 ? "conflict" : "conflicts"}`);
  button.addEventListener("click", lead);
  counts.append(" · ", button);
}

function showEstimate(now) {
  const told = now.estimate;
  const range = (value, [low, high]) => `${percent(value)} (${percent(low)} to ${percent(high)})`;
  find("rate").textContent = range(told.rate, told.interval);
  find("rest").textContent = range(told.rest, told.rest_interval);
  const minutes = now.pace == null ? "" : `, ${duration(told.until * now.pace)}`;
  if (told.until == null) find("until").textContent = "cannot be reached";
  else if (told.until === 0) find("until").textContent = "reached";
  else find("until").textContent = `about ${count(told.until)} answers${minutes}`;
}

function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
