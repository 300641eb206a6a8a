"use strict";
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const group = document.getElementById("group");
  const name = document.getElementById("name");
  const shown = document.getElementById("shown");

  // show shows the fields that match the filters, and keeps the filters in the address.
  function show() {
    const text = name.value.trim().toLowerCase();
    let n = 0;
    for (const section of document.querySelectorAll(".collection")) {
      let any = false;
      for (const field of section.querySelectorAll(".field")) {
        const match = (!group.value || field.dataset.group === group.value) && field.dataset.name.toLowerCase().includes(text);
        field.hidden = !match;
        if (match) { n++; any = true; }
      }
      const empty = !section.querySelector(".field") && !group.value && section.dataset.name.toLowerCase().includes(text);
      section.hidden = !any && !empty;
    }
    shown.textContent = n + (n === 1 ? " field" : " fields");
    const state = new URLSearchParams();
    if (group.value) state.set("group", group.value);
    if (text) state.set("name", name.value.trim());
    history.replaceState(null, "", state.size ? "#" + state : location.href.split("#")[0]);
  }

  function load() {
    const state = new URLSearchParams(location.hash.slice(1));
    group.value = state.get("group") ?? "";
    if (group.selectedIndex < 0) group.value = "";
    name.value = state.get("name") ?? "";
    show();
  }

  async function copy(button) {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // A page from a file may not use the clipboard: select the command instead.
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  for (const button of document.querySelectorAll(".command button")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("submit", (e) => e.preventDefault());
  addEventListener("hashchange", load);
  load();
})();
