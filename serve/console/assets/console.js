// The script of the console: logging in, live changes, keys. Pages work without it for reading.
(() => {
  "use strict";
  const keyName = "belay-key";
  const body = document.body;
  const $ = (selector, from = document) => from.querySelector(selector);

  // Logging in. The answer has the acting key, which stays in the storage of this origin.
  // A link of `belay console` has the token after #, which the browser does not send.
  const form = $("#login");
  if (form) {
    const problem = $("#login-problem");
    const enter = async () => {
      problem.textContent = "";
      const response = await fetch("/login", { method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams(new FormData(form)) }).catch(() => null);
      const answer = response ? await response.json().catch(() => ({})) : { detail: "The server does not answer. Is it running?" };
      if (!response || !response.ok) {
        problem.textContent = answer.detail || "The server refused the token.";
        return;
      }
      localStorage.setItem(keyName, answer.key);
      location.replace(answer.next);
    };
    form.addEventListener("submit", (event) => { event.preventDefault(); enter(); });
    const known = localStorage.getItem(keyName);
    if (location.hash.length > 1) {
      $("#token").value = decodeURIComponent(location.hash.slice(1));
      history.replaceState(null, "", location.pathname + location.search);
      // A link of somebody else must not change who you are without a click.
      if (!known) enter();
    } else if (known && !problem.textContent && !sessionStorage.getItem("belay-tried")) {
      // A link from another site comes without the cookie. From here, the browser sends it.
      sessionStorage.setItem("belay-tried", "yes");
      location.replace($("[name=next]", form).value);
    }
    return;
  }

  sessionStorage.removeItem("belay-tried");
  document.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["Belay-Key"] = localStorage.getItem(keyName) || "";
    // A message that is sent again after a lost answer must not run twice.
    if (event.detail.elt.id === "compose") event.detail.headers["Idempotency-Key"] = messageKey ||= [...crypto.getRandomValues(new Uint8Array(16))].join("-");
  });
  let messageKey = "";
  for (const kind of ["input", "change", "belay:sent"]) document.addEventListener(kind, () => { messageKey = ""; });

  // Notices. A notice stays when the next page takes the place of this one.
  let said = "";
  const notice = () => {
    const place = $("#notice");
    if (!place || !said) return;
    place.className = "";
    place.textContent = said;
  };
  document.addEventListener("belay:said", (event) => {
    said = event.detail.value;
    notice();
    setTimeout(() => { said = ""; }, 5000);
  });
  document.addEventListener("htmx:afterSettle", notice);
  document.addEventListener("htmx:sendError", () => {
    const place = $("#notice");
    place.className = "bad";
    place.textContent = "The server does not answer. It is unknown whether your request arrived: look before you try again.";
  });

  // Which approval is on the page, and whether it has been there long enough for a key to decide
  // it: a key that was pressed for the approval before this one must not.
  let shown = null;
  let arming = 0;
  const look = () => {
    const now = $("#detail")?.dataset.selected || "";
    if (now === shown) return;
    shown = now;
    delete body.dataset.armed;
    clearTimeout(arming);
    arming = setTimeout(() => { body.dataset.armed = now; }, 700);
  };
  look();

  // Live changes. Each part of the page names the news that concern it, and is loaded again.
  let stream = null;
  let waiting = new Set();
  let timer = 0;
  let loading = false;
  let swaps = 0; // how often an action of the user changed the page

  const address = () => location.pathname + location.search;

  // touched reports whether the user is typing in a part, or has marked text in it.
  const touched = (part) => part.contains(document.activeElement) && /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);

  const refresh = async () => {
    if (loading) { timer = setTimeout(refresh, 100); return; }
    const what = waiting;
    waiting = new Set();
    timer = 0;
    const wanted = (part) => what.has("all") || part.dataset.part.split(" ").some((name) => what.has(name));
    loading = true;
    const before = swaps, from = address();
    try {
      const response = await fetch(from, { headers: { "HX-Request": "true" } }).catch(() => null);
      if (!response) return; // the stream connects again, and then all is loaded
      if (response.status === 401) { location.reload(); return; }
      if (!response.ok) return;
      const text = await response.text().catch(() => "");
      if (!text) return;
      // What the user did meanwhile is newer than this answer.
      if (before !== swaps || from !== address()) { for (const name of what) plan(name); return; }
      const page = new DOMParser().parseFromString(text, "text/html");
      document.title = page.title;
      swap($("#pages"), $("#pages", page));
      for (const part of document.querySelectorAll("[data-part]")) {
        if (wanted(part) && !touched(part)) swap(part, page.getElementById(part.id));
      }
      const detail = $("#detail"), fresh = $("#detail", page);
      if (detail && fresh) {
        const now = $("article", detail), then = $("article", fresh);
        if (!now || !then || now.dataset.state !== then.dataset.state || detail.dataset.selected !== fresh.dataset.selected) swap(detail, fresh);
      }
      hideWritten();
    } finally {
      loading = false;
    }
  };

  // swap replaces an element, and keeps what is open and where the user is in it.
  const swap = (old, fresh) => {
    if (!old || !fresh || old.isEqualNode(fresh)) return;
    const open = new Set([...old.querySelectorAll("details[open][id]")].map((d) => d.id));
    const focus = old.contains(document.activeElement) ? document.activeElement : null;
    const mark = focus && (focus.id ? "#" + CSS.escape(focus.id) : focus.getAttribute("href") ? `[href="${CSS.escape(focus.getAttribute("href"))}"]` : "");
    const top = old.scrollTop;
    fresh = document.importNode(fresh, true);
    for (const d of fresh.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = true;
    old.replaceWith(fresh);
    look();
    fresh.scrollTop = top;
    if (window.htmx) window.htmx.process(fresh);
    // What is being typed about one approval must not go on in the field of the next one.
    const same = old.dataset.selected === fresh.dataset.selected;
    const again = mark && same && fresh.querySelector(mark);
    if (again) again.focus({ preventScroll: true });
  };

  // Every page shows the number of approvals. Other news concern only pages with a part for them.
  const plan = (what) => {
    if (what !== "all" && what !== "approvals" && !$(`[data-part~="${what}"]`)) return;
    waiting.add(what);
    if (!timer) timer = setTimeout(refresh, 60);
  };

  // The text that the model is writing. It goes when the stored message is there.
  let written = false;
  const write = (news) => {
    const box = $("#live-text");
    if (!box) return;
    if (news.fresh) { $("#live-answer").textContent = ""; $("#live-thinking .plain").textContent = ""; return; }
    const nearEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 160;
    const thinking = $("#live-thinking");
    if (news.what === "thinking") { thinking.hidden = false; $(".plain", thinking).append(news.text); } else { $("#live-answer").append(news.text); }
    box.hidden = false;
    written = false;
    if (nearEnd) scrollTo(0, document.documentElement.scrollHeight);
  };
  const hideWritten = () => {
    if (!written) return;
    written = false;
    const box = $("#live-text");
    if (!box) return;
    box.hidden = true;
    $("#live-answer").textContent = "";
    $("#live-thinking .plain").textContent = "";
    $("#live-thinking").hidden = true;
  };

  // What hooks say, and why they failed. It comes only now: the store does not have it.
  const mostNotes = 20;
  const note = (news) => {
    const box = $("#notes");
    if (!box) return;
    const entry = document.createElement("details"), title = document.createElement("summary"), text = document.createElement("pre");
    entry.className = news.bad ? "bad" : "";
    entry.open = true;
    title.textContent = news.title;
    text.textContent = news.text || "";
    entry.append(title, text);
    box.append(entry);
    if (box.children.length > mostNotes) box.firstElementChild.remove();
    box.hidden = false;
  };

  let opened = false;
  const connect = () => {
    if (stream || !body.dataset.live || document.hidden) return;
    stream = new EventSource(body.dataset.live);
    stream.onopen = () => {
      $("#offline").hidden = true;
      if (opened) plan("all"); // something may have changed meanwhile
      opened = true;
      body.dataset.connected = "true";
    };
    stream.onerror = () => {
      delete body.dataset.connected;
      $("#offline").hidden = false;
      if (stream.readyState === EventSource.CLOSED) { stream = null; setTimeout(connect, 2000); }
    };
    stream.onmessage = (event) => {
      const news = JSON.parse(event.data);
      if (news.what === "login" || news.what === "gone") { stream.close(); location.reload(); return; }
      if (news.what === "text" || news.what === "thinking") { write(news); return; }
      if (news.what === "note") { note(news); return; }
      if (news.what === "session") written = true;
      plan(news.what);
    };
  };
  // A browser has few connections to a server, so a page that nobody sees gives its one back.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) { connect(); return; }
    if (stream) { stream.close(); stream = null; }
  });
  connect();
  // A conversation opens at its end.
  if ($("#compose") && !location.hash && !location.search) scrollTo(0, document.documentElement.scrollHeight);

  document.addEventListener("belay:sent", () => {
    const compose = $("#compose");
    if (compose) compose.reset();
    plan("session");
  });
  document.addEventListener("change", (event) => {
    if (event.target.name !== "files") return;
    const n = event.target.files.length;
    $("[data-files]", event.target.parentElement).textContent = n === 0 ? "Add files" : n === 1 ? event.target.files[0].name : n + " files";
  });
  document.addEventListener("reset", (event) => {
    const files = $("[data-files]", event.target);
    if (files) files.textContent = "Add files";
  });
  // Times such as "2 min ago" grow old.
  setInterval(() => { if (!document.hidden) plan("all"); }, 60000);

  // Keys.
  let go = false;
  document.addEventListener("htmx:afterSwap", () => { swaps++; look(); });
  const move = (by) => {
    const all = [...document.querySelectorAll(".items a, .rows .name a, .waterfall a")].filter((a) => a.offsetParent);
    if (all.length === 0) return;
    let at = all.indexOf(document.activeElement);
    if (at < 0) at = all.findIndex((a) => a.getAttribute("aria-current"));
    const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    next.focus();
    if (next.dataset.approval) next.click();
  };
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && target.matches("[data-send]")) {
      target.form.requestSubmit($("button.primary", target.form));
      return;
    }
    if (event.key === "Enter" && target.id === "reason") {
      event.preventDefault();
      target.blur(); // htmx would put the focus into the same field of the next approval
      $("[value=deny]", target.form).click();
      return;
    }
    if (event.key === "Escape" && target.matches("input, textarea")) { target.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || target.matches("input, textarea, select")) return;
    if ($("#help").open) return;
    if (go) {
      go = false;
      const link = $(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    switch (event.key) {
      case "g": go = true; setTimeout(() => { go = false; }, 1500); return;
      case "?": $("#help").showModal(); return;
      case "j": move(1); return;
      case "k": move(-1); return;
    }
    const page = $(`[data-open="${CSS.escape(event.key)}"]`);
    if (page) { event.preventDefault(); page.click(); return; }
    const field = $(`[data-focus="${CSS.escape(event.key)}"]`);
    if (field) { event.preventDefault(); field.focus(); return; }
    const button = $(`[data-key="${CSS.escape(event.key)}"]`);
    if (button && body.dataset.armed === shown) { event.preventDefault(); button.click(); }
  });
  const helper = $("#help-open");
  if (helper) {
    helper.hidden = false;
    helper.addEventListener("click", () => $("#help").showModal());
  }
  document.addEventListener("submit", (event) => {
    if (event.target.getAttribute("action") === "/logout") localStorage.removeItem(keyName);
  });
})();
