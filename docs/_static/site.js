// Tables that scroll can be scrolled with the keys; the search button is named by its own text.
function nameWhatScrolls() {
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
    else table.removeAttribute("tabindex");
  }
}
addEventListener("load", () => {
  for (const button of document.querySelectorAll(".search-button-field")) button.removeAttribute("aria-label");
  nameWhatScrolls();
  addEventListener("resize", nameWhatScrolls);
  addEventListener("toggle", nameWhatScrolls, true);
});
