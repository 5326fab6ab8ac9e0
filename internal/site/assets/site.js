// The search and the switch between light and dark. The pages are complete without this script.
"use strict";
const root = document.documentElement, base = document.body.dataset.base;
try { if (localStorage.theme) root.dataset.theme = localStorage.theme; } catch { /* a browser may forbid it */ }
document.getElementById("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.theme = root.dataset.theme; } catch { /* likewise */ }
};
if (innerWidth <= 768) document.querySelector("nav details").open = false;

// find returns the parts of pages that contain all words: those with the words in a title first.
function find(pages, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const scored = [];
  for (const e of pages) {
    const title = (e.t || "").toLowerCase(), page = e.p.toLowerCase(), text = e.x.toLowerCase();
    let score = 0;
    for (const w of words) {
      const one = (title === w ? 60 : 0) + (title.includes(w) ? 40 : 0) + (page.includes(w) ? 15 : 0) + Math.min(text.split(w).length - 1, 10);
      if (!one) { score = 0; break; }
      score += one;
    }
    if (score) scored.push([score, e]);
  }
  return scored.sort((a, b) => b[0] - a[0]).slice(0, 20).map(s => s[1]);
}

// around returns the text around the first word, with all words marked.
function around(into, text, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean), at = text.toLowerCase().indexOf(words[0]), from = Math.max(0, at - 60);
  let rest = (from ? "…" : "") + text.slice(from, from + 170);
  while (rest) {
    let first = -1, length = 0;
    for (const w of words) { const i = rest.toLowerCase().indexOf(w); if (i >= 0 && (first < 0 || i < first)) { first = i; length = w.length; } }
    if (first < 0) break;
    into.append(rest.slice(0, first));
    into.append(Object.assign(document.createElement("mark"), { textContent: rest.slice(first, first + length) }));
    rest = rest.slice(first + length);
  }
  into.append(rest);
}

const input = document.getElementById("search"), found = document.getElementById("found");
input.oninput = () => {
  const query = input.value.trim();
  found.replaceChildren();
  found.hidden = !query;
  const all = find(window.belayPages || [], query);
  for (const e of all) {
    const link = Object.assign(document.createElement("a"), { href: base + e.u });
    link.append(Object.assign(document.createElement("b"), { textContent: e.t && e.t !== e.p ? e.p + " › " + e.t : e.p }));
    const small = document.createElement("small");
    around(small, e.x, query);
    link.append(small);
    found.append(Object.assign(document.createElement("li"), {}));
    found.lastChild.append(link);
  }
  if (query && !all.length) found.innerHTML = "<li><p>Nothing found.</p></li>";
};
document.addEventListener("keydown", e => {
  const links = [...found.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (e.key === "/" && document.activeElement !== input) { e.preventDefault(); input.focus(); input.select(); }
  else if (e.key === "Escape") { found.hidden = true; input.blur(); }
  else if (!found.hidden && (e.key === "ArrowDown" || e.key === "ArrowUp")) { e.preventDefault(); (links[at + (e.key === "ArrowDown" ? 1 : -1)] || input).focus(); }
  else if (e.key === "Enter" && document.activeElement === input && links.length) location.href = links[0].href;
});
document.addEventListener("click", e => { if (!e.target.closest("search")) found.hidden = true; });
