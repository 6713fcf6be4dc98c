// Tables that scroll can be scrolled with the keys; what has hidden or partly hidden text is named by it.
function nameWhatScrolls() {
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
    else table.removeAttribute("tabindex");
  }
}
addEventListener("load", () => {
  for (const named of document.querySelectorAll(".search-button-field, .sphx-glr-thumbcontainer a")) {
    named.ariaLabel = named.textContent.replace(/\s+/g, " ").trim();
  }
  nameWhatScrolls();
  addEventListener("resize", nameWhatScrolls);
  addEventListener("toggle", nameWhatScrolls, true);
});
