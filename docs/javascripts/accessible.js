// Names and keyboard access that the theme leaves out: the search dialogue, nested navigation and wide tables.

function name() {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-nav .md-nav[aria-labelledby]").forEach((nested, number) => {
    const label = document.getElementById(nested.getAttribute("aria-labelledby"));
    nested.setAttribute("aria-label", `Part ${number + 1}: ${label?.textContent.trim() ?? ""}`);
    nested.removeAttribute("aria-labelledby");
  });
  for (const buttons of document.querySelectorAll(".md-code__nav")) {
    buttons.setAttribute("role", "none");
  }
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap, .highlight > pre, .md-typeset pre > code")) {
    table.setAttribute("tabindex", "0");
  }
}

name();
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
