// Shortcuts, live updates and small conveniences. Every page works without them.
"use strict";

// Theme: the system's, or the one chosen here. Set before anything is drawn.
const root = document.documentElement;
const savedTheme = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
if (savedTheme()) root.dataset.theme = savedTheme();

function toggleTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* no storage: the theme lasts for this page */ }
}

// Keyboard shortcuts ----------------------------------------------------------------------------------------------------------

let goPending = false;  // "g" was pressed; the next key names a page

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    if (event.key === "ArrowDown" && event.target.matches("[data-search]")) { event.preventDefault(); move(1); }
    return;
  }
  const target = goPending && { s: "/sources", j: "/jobs", h: "/" }[event.key];
  goPending = event.key === "g";
  if (target) location.assign(target);
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
  const targets = items.map((item) => item.querySelector("[data-item] a, [data-item] summary") ?? item);
  const current = items.findIndex((item) => item.contains(document.activeElement));
  targets[current < 0 ? 0 : Math.min(targets.length - 1, Math.max(0, current + by))]?.focus();
}

// Clicks and forms --------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-toggle]")) toggleTheme();
  if (event.target.closest("[data-keys]")) document.querySelector("dialog.keys").showModal();
  const button = event.target.closest("[data-confirm]");
  if (button && !confirm(button.dataset.confirm)) event.preventDefault();
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

// Copy buttons of code blocks ---------------------------------------------------------------------------------------

function makeCopyable(code) {
  code.tabIndex = 0;
  if (!navigator.clipboard) return;  // not available over plain HTTP from another machine
  const wrapper = document.createElement("div");
  const button = document.createElement("button");
  wrapper.className = "code";
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  code.replaceWith(wrapper);
  wrapper.append(code, button);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

// Live updates of a job --------------------------------------------------------------------------------------------

function watchJob(container) {
  const line = document.querySelector("[data-progress]");
  const progress = JSON.parse(line.dataset.progress);
  const events = new EventSource(container.dataset.live);
  events.addEventListener("open", () => container.classList.remove("disconnected"));
  events.addEventListener("error", () => {
    container.classList.add("disconnected");  // the browser reconnects by itself, unless the response was an error
    if (events.readyState === EventSource.CLOSED) setTimeout(() => watchJob(container), 2000);
  });
  events.addEventListener("job", (event) => {
    const job = JSON.parse(event.data);
    progress.push([job.seconds, job.done]);
    line.setAttribute("points", polylinePoints(progress));
    replaceContent(container, job.html);
    if (job.live) return;
    events.close();
    reloadLedger();
  });
}

// At the end of a crawl the ledger is loaded again with the filter chosen last, even if that is still loading.
let chosenFilter = null;

function reloadLedger() {
  if (chosenFilter?.isConnected) chosenFilter.click();
  else document.querySelector("[data-ledger] .ledger").dispatchEvent(new Event("reload-ledger"));
}

document.addEventListener("click", (event) => {
  chosenFilter = event.target.closest("[data-ledger] a") ?? chosenFilter;
});

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.target.matches("[data-ledger] :active")) return;
  event.detail.shouldSwap = false;  // do not replace an element while it is being pressed
  document.addEventListener("pointerup", reloadLedger, { once: true });
});

// The same as polyline_points in charts.py.
function polylinePoints(progress) {
  const lastSecond = Math.max(progress.at(-1)[0], 0.001), lastCount = progress.at(-1)[1] || 1;
  const step = Math.max(1, Math.floor(progress.length / 200));
  const picked = progress.filter((_, index) => index % step === 0 || index === progress.length - 1);
  const points = picked.map(([at, done]) =>
    `${(600 * at / lastSecond).toFixed(1)},${(120 - 120 * done / lastCount).toFixed(1)}`);
  return ["0,120", ...points].join(" ");
}

function replaceContent(container, html) {
  const focused = container.contains(document.activeElement) && document.activeElement.closest("form")?.getAttribute("action");
  container.innerHTML = html;
  if (focused) container.querySelector(`form[action="${CSS.escape(focused)}"] button`)?.focus();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".prose pre").forEach(makeCopyable);
  document.querySelectorAll("[data-live]").forEach(watchJob);
});
