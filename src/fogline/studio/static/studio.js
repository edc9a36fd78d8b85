// What makes the pages quicker to use; all of them work without it.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // The link that was printed carries the token behind #, which is never sent: a form posts it.
  const enter = document.getElementById("enter");
  if (enter && location.hash.length > 8) {
    enter.elements.token.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
    enter.submit();
    return;
  }

  // A form that spends is sent once.
  for (const form of document.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", () => {
      for (const button of form.querySelectorAll("button")) setTimeout(() => { button.disabled = true; }, 0);
    });
  }
  addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("form[data-once] button")) button.disabled = false;
  });

  const question = document.getElementById("question");
  if (question) ask(question);
  const work = document.getElementById("work");
  if (work) wait(work);

  function ask(form) {
    const outlook = document.getElementById("outlook");
    const slider = document.getElementById("slider");
    const epsilon = form.elements.epsilon;
    const stops = slider.dataset.values.split(" ").map(Number);
    let waiting = 0, again = 0, request = null;

    function place() {
      const value = Number(epsilon.value.replace(",", "."));
      if (!(value > 0)) return;
      let best = 0;
      stops.forEach((stop, k) => { if (Math.abs(Math.log(stop / value)) < Math.abs(Math.log(stops[best] / value))) best = k; });
      slider.value = String(best);
      slider.setAttribute("aria-valuetext", "epsilon " + value);
    }

    async function renew() {
      clearTimeout(again);
      if (request) request.abort();
      request = new AbortController();
      const fields = new URLSearchParams(new FormData(form));
      try {
        const answer = await fetch(form.dataset.outlook + "?" + fields, { signal: request.signal, credentials: "same-origin" });
        if (!answer.ok || answer.redirected) return;
        const text = await answer.text();
        if (text !== outlook.dataset.text) {
          outlook.dataset.text = text;
          outlook.innerHTML = text;
        }
        if (outlook.querySelector("[data-pending]")) again = setTimeout(renew, 700);
      } catch (error) {
        if (error.name !== "AbortError") again = setTimeout(renew, 3000);
      }
    }
    function soon() { clearTimeout(waiting); waiting = setTimeout(renew, 120); }

    function columns() {
      const boxes = [...form.querySelectorAll(".pick input")];
      const full = boxes.filter((box) => box.checked).length >= 3;
      for (const box of boxes) {
        const row = box.closest(".column");
        row.querySelector(".range").disabled = !box.checked;
        row.classList.toggle("chosen", box.checked);
        box.disabled = full && !box.checked;
      }
    }

    slider.addEventListener("input", () => {
      epsilon.value = String(stops[Number(slider.value)]);
      slider.setAttribute("aria-valuetext", "epsilon " + epsilon.value);
      soon();
    });
    epsilon.addEventListener("input", () => { place(); soon(); });
    form.addEventListener("change", (event) => {
      const changed = event.target;
      if (changed.matches(".pick input")) columns();
      if (changed.tagName === "SELECT" && changed.name.startsWith("range.")) named(changed);
      soon();
    });
    form.addEventListener("input", (event) => {
      const typed = event.target;
      const row = typed.closest && typed.closest(".range");
      if (row && /^(low|high)\./.test(typed.name)) row.querySelector("select").value = "";
      soon();
    });
    function named(select) {
      const chosen = select.selectedOptions[0];
      if (!chosen.value) return;
      const row = select.closest(".range");
      for (const part of ["low", "high", "step"]) row.querySelector(`[name^="${part}."]`).value = chosen.dataset[part];
    }
    columns();
    place();
    if (outlook.querySelector("[data-pending]")) again = setTimeout(renew, 700);
  }

  function wait(place) {
    const bar = place.querySelector("progress");
    async function look() {
      try {
        const answer = await fetch(place.dataset.state, { credentials: "same-origin" });
        const state = await answer.json();
        if (state.told) { location.reload(); return; }
        bar.max = Math.max(state.next, 1);
        bar.value = Math.min(state.elapsed, bar.max);
      } catch { /* the studio may be stopped: ask again */ }
      setTimeout(look, 500);
    }
    setTimeout(look, 300);
  }
})();
