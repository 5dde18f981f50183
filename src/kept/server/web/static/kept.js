// What makes the pages quick. Each page is whole without it.
"use strict";

// Light or dark: as the system says, or as was chosen here. Before anything is drawn.
const root = document.documentElement;
const remembered = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
if (remembered()) root.dataset.theme = remembered();

function toggleTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* it holds for this page */ }
}

// Keys ----------------------------------------------------------------------------------------------------------

let leader = false;

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    if (event.key === "ArrowDown" && event.target.matches("[data-search]")) { event.preventDefault(); move(1); }
    return;
  }
  const follow = leader && { s: "/sources", j: "/jobs", h: "/" }[event.key];
  leader = event.key === "g";
  if (follow) location.assign(follow);
  else if (event.key === "/") { event.preventDefault(); focusSearch(); }
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "t") toggleTheme();
  else if (event.key === "?") document.querySelector("dialog.keys").showModal();
});

function focusSearch() {
  const field = document.querySelector("[data-search]");
  if (!field) return location.assign("/");
  field.focus();
  field.select();
}

function move(by) {
  const items = [...document.querySelectorAll("[data-item], .prose :is(h1, h2, h3, h4)[id]")];
  const stops = items.map((item) => item.querySelector("[data-item] a, [data-item] summary") ?? item);
  const at = items.findIndex((item) => item.contains(document.activeElement));
  stops[at < 0 ? 0 : Math.min(stops.length - 1, Math.max(0, at + by))]?.focus();
}

// What is clicked and sent --------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-toggle]")) toggleTheme();
  if (event.target.closest("[data-keys]")) document.querySelector("dialog.keys").showModal();
  const sure = event.target.closest("[data-sure]");
  if (sure && !confirm(sure.dataset.sure)) event.preventDefault();
});

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (button?.dataset.busy) setTimeout(() => { button.disabled = true; button.textContent = button.dataset.busy; });
});

document.addEventListener("change", (event) => {
  if (event.target.closest("[data-submit-on-change]")) event.target.form.requestSubmit();
  if (event.target.matches("[data-history]")) versionAt(event.target).click();
});

document.addEventListener("input", (event) => {
  if (event.target.matches("[data-history]"))
    event.target.closest(".slide").querySelector("output").value = Number(event.target.value) + 1;
});

function versionAt(slider) {
  const newestFirst = slider.closest(".history").querySelectorAll("[data-version]");
  return newestFirst[newestFirst.length - 1 - Number(slider.value)];
}

// Code that can be copied ---------------------------------------------------------------------------------------

function makeCopyable(code) {
  code.tabIndex = 0;
  if (!navigator.clipboard) return;  // the page came over plain HTTP, from another machine
  const holder = document.createElement("div");
  const button = document.createElement("button");
  holder.className = "code";
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  code.replaceWith(holder);
  holder.append(code, button);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

// A crawl as it goes --------------------------------------------------------------------------------------------

function watch(place) {
  const line = document.querySelector("[data-course]");
  const course = JSON.parse(line.dataset.course);
  const events = new EventSource(place.dataset.live);
  events.addEventListener("open", () => place.classList.remove("lost-touch"));
  events.addEventListener("error", () => {
    place.classList.add("lost-touch");  // the browser tries again by itself, unless the answer was an error
    if (events.readyState === EventSource.CLOSED) setTimeout(() => watch(place), 2000);
  });
  events.addEventListener("job", (event) => {
    const told = JSON.parse(event.data);
    course.push([told.seconds, told.done]);
    line.setAttribute("points", points(course));
    replace(place, told.html);
    if (told.live) return;
    events.close();
    loadLedgerAgain();
  });
}

// The ledger at the end of a crawl: as it was chosen, even if the answer to that is still on its way.
let chosen = null;

function loadLedgerAgain() {
  if (chosen?.isConnected) chosen.click();
  else document.querySelector("[data-ledger] .ledger").dispatchEvent(new Event("again"));
}

document.addEventListener("click", (event) => { chosen = event.target.closest("[data-ledger] a") ?? chosen; });

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.target.matches("[data-ledger] :active")) return;
  event.detail.shouldSwap = false;  // nothing goes from under a finger
  document.addEventListener("pointerup", loadLedgerAgain, { once: true });
});

function points(course) {
  const longest = Math.max(course.at(-1)[0], 0.001), most = course.at(-1)[1] || 1;
  const step = Math.max(1, Math.floor(course.length / 200));
  const picked = course.filter((_, at) => at % step === 0 || at === course.length - 1);
  return ["0,120", ...picked.map(([at, done]) => `${(600 * at / longest).toFixed(1)},${(120 - 120 * done / most).toFixed(1)}`)].join(" ");
}

function replace(place, html) {
  const focused = place.contains(document.activeElement) && document.activeElement.closest("form")?.getAttribute("action");
  place.innerHTML = html;
  if (focused) place.querySelector(`form[action="${CSS.escape(focused)}"] button`)?.focus();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".prose pre").forEach(makeCopyable);
  document.querySelectorAll("[data-live]").forEach(watch);
});
