"use strict";
(() => {
  const list = document.getElementById("suspect-list");
  if (!list) return;
  const find = (id) => document.getElementById(id);
  const [sort, pair, kind, least, dialog, picture] = ["sort", "pair", "kind", "least", "closer", "closer-picture"].map(find);
  const all = [...list.querySelectorAll(".suspect")];
  const place = new Map(all.map((item, number) => [item, number]));
  const fact = (item, name) => item.dataset[name] ?? "";
  const handle = (item) => item.querySelector("summary") ?? item;
  const byText = (name) => (a, b) => fact(a, name).localeCompare(fact(b, name), undefined, { numeric: true });
  const orders = {
    order: () => 0,
    confidence: (a, b) => fact(b, "confidence") - fact(a, "confidence"),
    given: byText("given"),
    id: byText("id"),
  };
  const page = window.matchMedia("(max-width: 40rem)").matches ? 20 : 48;
  let limit = page;
  let shown = all;
  let current = all[0];
  let viewed = current;

  // Only one suspect is a tab stop, so that Tab leaves the gallery and arrows move within it.
  function settle(item) {
    if (current) handle(current).tabIndex = -1;
    current = item;
    if (current) handle(current).tabIndex = 0;
  }

  function passes(item) {
    return (!pair.value || fact(item, "pair") === pair.value)
      && (!kind.value || fact(item, "verdict") === kind.value)
      && Number(fact(item, "probability")) >= Number(least.value);
  }

  function refresh() {
    const order = orders[sort.value];
    const sorted = [...all].sort((a, b) => order(a, b) || place.get(a) - place.get(b));
    list.append(...sorted);
    shown = sorted.filter(passes);
    const visible = new Set(shown);
    for (const item of all) item.hidden = !visible.has(item);
    unfold(page);
    find("least-shown").textContent = Number(least.value).toFixed(2);
    find("count").textContent = shown.length < all.length ? `${shown.length} of ${all.length} labels` : `${all.length} labels`;
    find("nothing").hidden = shown.length > 0;
    settle(shown[0]);
  }

  // Suspects beyond the limit wait for the button, or for the arrow keys to reach them; print has them all.
  function unfold(upTo) {
    limit = upTo;
    shown.forEach((item, number) => item.classList.toggle("later", number >= limit));
    find("more").hidden = shown.length <= limit;
    find("more").textContent = `Show all ${shown.length}`;
  }

  function columns() {
    if (shown.length < 2) return 1;
    const next = shown.findIndex((item) => item.offsetTop > shown[0].offsetTop);
    return next < 1 ? shown.length : next;
  }

  function steps(key) {
    switch (key) {
      case "j": case "ArrowRight": return 1;
      case "k": case "ArrowLeft": return -1;
      case "ArrowDown": return columns();
      case "ArrowUp": return -columns();
      case "Home": return -shown.length;
      case "End": return shown.length;
      default: return 0;
    }
  }

  function move(by) {
    const from = shown.indexOf(current);
    const to = Math.min(Math.max(from + by, 0), shown.length - 1);
    if (to >= limit) unfold(shown.length);
    settle(shown[to]);
    if (dialog.open) fill(current);
    else handle(current).focus();
  }

  function fill(item) {
    viewed = item;
    for (const slot of dialog.querySelectorAll("[data-slot]")) {
      const name = slot.dataset.slot;
      const value = fact(item, name);
      const number = name === "probability" || name === "confidence";
      slot.textContent = number ? Number(value).toFixed(4) : value;
      if (slot.tagName === "DD") slot.hidden = slot.previousElementSibling.hidden = value === "";
    }
    const unsure = fact(item, "given") === fact(item, "suggested");
    for (const mark of dialog.querySelectorAll("#closer-unsure")) mark.hidden = !unsure;
    for (const mark of dialog.querySelectorAll("ins")) mark.hidden = unsure;
    const kept = item.querySelector("template");
    find("closer-beside").replaceChildren(...(kept ? [kept.content.cloneNode(true)] : []));
    const image = item.querySelector("img");
    picture.hidden = !image;
    if (image) {
      picture.src = image.src;
      picture.className = image.className;
    }
  }

  function open(item) {
    settle(item);
    fill(item);
    dialog.showModal();
  }

  list.addEventListener("click", (event) => {
    const item = event.target.closest(".suspect");
    if (item && item.tagName === "BUTTON") open(item);
  });
  list.addEventListener("focusin", (event) => {
    const item = event.target.closest(".suspect");
    if (item) settle(item);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  // The browser gives focus back to where the view was opened; it belongs where the arrows have gone since.
  dialog.addEventListener("close", () => viewed.focus());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select")) return;
    const inside = dialog.open || list.contains(event.target);
    const letter = event.key === "j" || event.key === "k";
    if (event.key === "/" && !dialog.open) {
      event.preventDefault();
      pair.focus();
    } else if ((inside || letter) && shown.length && steps(event.key)) {
      event.preventDefault();
      move(inside ? steps(event.key) : 0);
    }
  });
  find("more").addEventListener("click", () => {
    const next = shown[limit];
    unfold(shown.length);
    settle(next);
    handle(next).focus({ preventScroll: true });
  });
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  for (const control of [sort, pair, kind]) control.addEventListener("change", refresh);
  least.addEventListener("input", refresh);
  for (const item of all) handle(item).tabIndex = -1;
  document.documentElement.classList.add("scripted");
  refresh();
})();
