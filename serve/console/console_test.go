package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// write asks for approval in the mode strict.
const writeNotes = `call write {"path": "notes.md", "content": "one\ntwo\n"}`

// waits starts a turn that waits for a decision, and returns the approval.
func (w *world) waits(text string) api.Approval {
	w.t.Helper()
	r := w.turn(w.session("Notes", nil), text)
	if len(r.Approvals) != 1 {
		w.t.Fatalf("the turn ends with %+v, want it parked with one approval", r)
	}
	return w.approval(r.Approvals[0])
}

// approval reads an approval.
func (w *world) approval(id string) api.Approval {
	w.t.Helper()
	a, err := w.client("admin").ReadApproval(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// Each choice of the inbox is stored as the decision it names, and the approval leaves the
// page.
//
// SPEC G-02
func TestChoices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, c := range map[string]struct {
		text, choose string
		fill         map[string]string
		check        func(d *belay.Decision) bool
	}{
		"once":    {writeNotes, "once", nil, func(d *belay.Decision) bool { return d.Allow && d.Scope.Kind == "" }},
		"session": {writeNotes, "session", nil, func(d *belay.Decision) bool { return d.Allow && d.Scope.Kind == belay.ScopeSession }},
		"deny":    {writeNotes, "deny", map[string]string{"#reason": "use the wiki"}, func(d *belay.Decision) bool { return !d.Allow && d.Reason == "use the wiki" }},
		"calls like this": {`call shell {"command": "git fetch origin main"}`, "pattern", nil, func(d *belay.Decision) bool {
			return d.Allow && d.Scope.Kind == belay.ScopePattern && d.Scope.Pattern != ""
		}},
		"answer": {`call ask_user {"question": "Which colour?"}`, "answer", map[string]string{"#answer": "blue"}, func(d *belay.Decision) bool { return d.Allow }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := w.waits(c.text)
			b := w.open("admin", 1280)
			b.visit("/approvals/" + a.ID)
			for field, text := range c.fill {
				b.run(chromedp.SendKeys(chromedp.CSS(field), text))
			}
			b.click("[value=" + c.choose + "]")
			b.waitFor(fmt.Sprintf("location.pathname === '/approvals' && !document.querySelector('[data-approval=%s]')", quote(a.ID)), "the approval leaves the page")
			d := w.approval(a.ID).Decided
			if d == nil || !c.check(d) || d.By != "token admin" {
				t.Errorf("the decision is %+v", d)
			}
		})
	}
}

// The inbox can be used with keys only.
//
// SPEC G-02, G-05
func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first, second, third := w.waits(writeNotes), w.waits(`call write {"path": "b.md", "content": "x"}`), w.waits(`call write {"path": "c.md", "content": "x"}`)
	b := w.open("admin", 1280)
	b.visit("/sessions")
	b.key("g")
	b.key("i")
	b.waitText("#detail", "notes.md")
	b.key("j") // the second one
	b.waitText("#detail", "b.md")
	b.waitFor("document.body.dataset.connected", "the page is ready")
	// A key that comes at once, for the approval before, must not decide the next one.
	_ = eval[bool](b, `document.addEventListener("htmx:afterSwap", () => document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "a", bubbles: true})), {once: true}); true`)
	b.key("d")
	b.run(chromedp.SendKeys(chromedp.CSS("#reason"), "no"+kb.Enter))
	b.waitText("#detail", "notes.md")
	if d := w.approval(second.ID).Decided; d == nil || d.Allow || d.Reason != "no" {
		t.Errorf("the second decision is %+v, want a denial with its reason", d)
	}
	b.waitText("#notice", "Denied")
	b.waitFor("document.activeElement === document.body && document.body.dataset.armed === "+quote(first.ID), "a moment of looking has passed")
	if d := w.approval(first.ID).Decided; d != nil {
		t.Errorf("a key that came at once decided: %+v", d)
	}
	b.key("a")
	b.waitText("#detail", "c.md")
	if d := w.approval(first.ID).Decided; d == nil || !d.Allow {
		t.Errorf("the first decision is %+v, want an approval", d)
	}
	b.key("?")
	b.run(chromedp.WaitVisible(chromedp.CSS("#help[open]")))
	b.key(kb.Escape)
	b.waitFor("!document.querySelector('#help').open", "the help is closed")
	if d := w.approval(third.ID).Decided; d != nil {
		t.Errorf("the third approval was decided: %+v", d)
	}
}

// An action that the server refuses says why in the notice, and the page stays as it is.
//
// SPEC G-02, V-06
func TestRefusedActionSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.waits(writeNotes)
	b := w.open("admin", 1280)
	b.visit("/approvals/" + a.ID)
	_ = eval[bool](b, "localStorage.clear(); true") // the key that lets a page act
	b.click("[value=once]")
	b.waitText("#notice", "This page cannot act for you")
	b.waitText("#detail", "notes.md")
	if d := w.approval(a.ID).Decided; d != nil {
		t.Errorf("the approval was decided: %+v", d)
	}
}

// An approval that is decided elsewhere disappears at once, and new ones appear. Of two people
// who decide at the same time one wins, and the other is told who.
//
// SPEC G-02
func TestDecidedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.token("ann", serve.RoleApprove)
	b, other := w.open("admin", 1280), w.open("ann", 1280)
	b.visit("/approvals")
	b.waitText("#queue", "Nothing waits")
	a := w.waits(writeNotes)
	b.waitText("#queue", "notes.md")
	b.waitText("#detail", "notes.md")
	b.waitFor("document.title.startsWith('(1)')", "the title has the count")
	if _, err := w.client("admin").DecideApproval(t.Context(), api.DecideApproval{Approval: a.ID, Hash: a.Hash, Allow: false}); err != nil {
		t.Fatal(err)
	}
	b.waitText("#queue", "Nothing waits")
	b.waitFor("!document.title.startsWith('(')", "the title has no count")

	race := w.waits(`call write {"path": "race.md", "content": "x"}`)
	for _, one := range []*browser{b, other} {
		one.visit("/approvals/" + race.ID)
	}
	var both sync.WaitGroup
	for i, one := range []*browser{b, other} {
		both.Go(func() { one.click([]string{"[value=once]", "[value=deny]"}[i]) })
	}
	both.Wait()
	b.waitText("#queue", "Nothing waits")
	other.waitText("#queue", "Nothing waits")
	d := w.approval(race.ID).Decided
	if d == nil {
		t.Fatal("nobody decided")
	}
	winner, loser := b, other
	if d.By == "token ann" {
		winner, loser = other, b
	}
	winner.waitText("#notice", map[bool]string{true: "Approved", false: "Denied"}[d.Allow])
	loser.waitText("#notice", "by "+d.By)
}

// The text of a model appears while it writes, a person can stop the turn, and the stored
// message takes the place of the text.
//
// SPEC G-03
func TestLiveTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	session := w.session("Live", nil)
	b := w.open("admin", 1280)
	b.visit("/sessions/" + session)
	b.run(chromedp.SendKeys(chromedp.CSS("#text"), "slowly one two three"))
	b.click("#compose .primary")
	w.model.step <- struct{}{}
	b.waitText("#live-answer", "one")
	b.waitFor("document.querySelector('#text').value === ''", "the field is empty again")
	w.model.step <- struct{}{}
	b.waitText("#live-answer", "one two")
	b.waitText("#turn", "running")
	w.model.step <- struct{}{}
	b.waitText("#messages", "one two three")
	b.waitFor("document.querySelector('#live-text').hidden", "the live text is gone")
	b.waitText("#head", "done")

	b.run(chromedp.SendKeys(chromedp.CSS("#text"), "slowly never ends"))
	b.click("#compose .primary")
	w.model.step <- struct{}{}
	b.waitText("#live-answer", "never")
	b.click("#head .danger")
	b.waitText("#head", "aborted")
}

// A page that is open while the server restarts says so, and shows what happened since.
//
// SPEC G-05
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.open("admin", 1280)
	b.visit("/approvals")
	w.stop()
	b.waitText("#offline", "connection is lost")
	w.stop = w.start()
	a := w.waits(writeNotes)
	b.waitFor("document.querySelector('#offline').hidden", "the page is connected again")
	b.waitText("#queue", "notes.md")
	b.click("[value=once]")
	b.waitText("#queue", "Nothing waits")
	if d := w.approval(a.ID).Decided; d == nil || !d.Allow {
		t.Errorf("the decision is %+v", d)
	}
}

// cookie logs in without JavaScript.
func (w *world) cookie(as string) *http.Cookie {
	w.t.Helper()
	resp := w.post("/login", url.Values{"token": {w.secret[as]}, "next": {"/sessions"}}, nil, nil)
	if resp.status != http.StatusSeeOther || resp.header.Get("Location") != "/sessions" || len(resp.cookies) != 1 {
		w.t.Fatalf("the login answers %d with %v", resp.status, resp.header)
	}
	return resp.cookies[0]
}

// post sends a form.
func (w *world) post(path string, form url.Values, cookie *http.Cookie, header map[string]string) *answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != nil {
		r.AddCookie(cookie)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return w.do(r)
}

// Every page can be read without JavaScript. Without a login it leads to the login page.
//
// SPEC G-05
func TestReadingNeedsNoScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gated)
	a := w.waits(writeNotes)
	cookie := w.cookie("admin")
	turn, spans := w.timeline(a.Session)
	pages := map[string]string{
		"/approvals": "notes.md", "/approvals/" + a.ID: "notes.md", "/sessions": "Notes", "/sessions/" + a.Session: "notes.md", "/new": "What should the agent do?",
		"/hooks": "only-edits", "/hooks?phase=tool.pre&hook=no-prod": "gates.yaml", "/runs?all=true": "audit", "/jobs": "Background jobs", "/usage": "Tokens by day",
	}
	for i := range spans {
		if run := spans[i].Run; run != "" {
			pages["/sessions/"+a.Session+"/runs/"+run] = "Started"
			pages["/sessions/"+a.Session+"?turn="+turn+"&bar="+run] = "No hook objected."
		}
	}
	for path, want := range pages {
		resp := w.get(path, cookie)
		if text := resp.body; resp.status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, want a page with %q: %s", path, resp.status, want, text)
		}
		if out := w.get(path, nil); out.status != http.StatusSeeOther || !strings.HasPrefix(out.header.Get("Location"), "/login") {
			t.Errorf("%s without a login: status %d to %q", path, out.status, out.header.Get("Location"))
		}
	}
	if resp := w.get("/nowhere", cookie); resp.status != http.StatusNotFound || !strings.Contains(resp.body, "There is no page") {
		t.Errorf("a page that does not exist: status %d", resp.status)
	}
	if resp := w.get("/sessions/nobody", cookie); resp.status != http.StatusNotFound {
		t.Errorf("a session that does not exist: status %d", resp.status)
	}
	if err := w.tokens.Revoke("admin"); err != nil {
		t.Fatal(err)
	}
	if resp := w.get("/sessions", cookie); resp.status != http.StatusUnauthorized || !strings.Contains(resp.body, "no longer valid") {
		t.Errorf("a revoked token: status %d", resp.status)
	}
}

// The cookie alone cannot decide. A program that gets the cookie must not get further: browsers
// send cookies to all ports of a host.
//
// SPEC V-05, V-06
func TestCookieCannotAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.token("reader", serve.RoleRead)
	a := w.waits(writeNotes)
	cookie, other := w.cookie("admin"), w.cookie("reader")
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v, want HttpOnly and SameSite=Strict", cookie)
	}
	if strings.Contains(cookie.Value, w.secret["admin"]) {
		t.Error("the cookie has the token in clear text")
	}
	resp := w.post("/login", url.Values{"token": {w.secret["reader"]}}, nil, map[string]string{"Accept": "application/json"})
	key := field(t, resp.body, "key")
	otherKey := resp.cookies[0]
	resp = w.post("/login", url.Values{"token": {w.secret["admin"]}}, nil, map[string]string{"Accept": "application/json"})
	able, right := resp.cookies[0], field(t, resp.body, "key") // only the site of the request is wrong
	form := url.Values{"choice": {"once"}, "hash": {a.Hash}}
	for name, c := range map[string]struct {
		cookie *http.Cookie
		header map[string]string
		status int
	}{
		"no key":                       {cookie, nil, http.StatusForbidden},
		"an empty key":                 {cookie, map[string]string{"Belay-Key": ""}, http.StatusForbidden},
		"the key of another login":     {cookie, map[string]string{"Belay-Key": key}, http.StatusForbidden},
		"a page of another site":       {able, map[string]string{"Belay-Key": right, "Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"another port":                 {able, map[string]string{"Belay-Key": right, "Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		"a token without the role":     {otherKey, map[string]string{"Belay-Key": key}, http.StatusForbidden},
		"a cookie of an earlier login": {other, map[string]string{"Belay-Key": key}, http.StatusForbidden},
		"no cookie":                    {nil, map[string]string{"Belay-Key": key}, http.StatusSeeOther},
		"a cookie that somebody made":  {&http.Cookie{Name: cookie.Name, Value: "x" + cookie.Value[1:]}, map[string]string{"Belay-Key": key}, http.StatusSeeOther},
		"the cookie as a token":        {nil, map[string]string{"Authorization": "Bearer " + cookie.Value}, http.StatusSeeOther},
	} {
		if resp := w.post("/approvals/"+a.ID, form, c.cookie, c.header); resp.status != c.status {
			t.Errorf("%s: status %d, want %d", name, resp.status, c.status)
		}
	}
	if d := w.approval(a.ID).Decided; d != nil {
		t.Errorf("somebody decided: %+v", d)
	}
}

// The texts of models, users and tools cannot put a script or an address of another server
// into a page. The browser of the test reports both.
//
// SPEC V-06, G-01
func TestTextsAreText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const evil = `<img src=x onerror="window.evil=1"><script>window.evil=1</script>[a](javascript:window.evil=1) ![p](https://example.com/p.png)`
	session := w.session(evil, map[string]string{"l": evil})
	w.turn(session, evil+"\nsay "+evil+"\nthink "+evil)
	r := w.turn(session, fmt.Sprintf("call write {\"path\": %s, \"content\": %s}", quote("a"+evil), quote(evil)))
	b := w.open("admin", 1280)
	for _, page := range []string{"/sessions", "/sessions/" + session, "/approvals", "/sessions?text=" + url.QueryEscape(evil), "/login?next=" + url.QueryEscape("javascript:window.evil=1")} {
		b.run(chromedp.Navigate(b.w.url+page), chromedp.WaitReady(chromedp.CSS("body")))
		if eval[bool](b, "'evil' in window || !!document.querySelector('main script, [onerror], [href^=javascript], img[src^=http]')") {
			t.Errorf("%s runs what a text says", page)
		}
	}
	_ = r
	for next, want := range map[string]string{"//example.com/": "/approvals", "https://example.com": "/approvals", `/\example.com`: "/approvals", "/sessions?a=b": "/sessions?a=b"} {
		resp := w.post("/login", url.Values{"token": {w.secret["admin"]}, "next": {next}}, nil, nil)
		if got := resp.header.Get("Location"); got != want {
			t.Errorf("the login with next=%q leads to %q, want %q", next, got, want)
		}
	}
}
