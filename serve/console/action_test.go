package console_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// picturePNG writes an image, and returns its path.
func picturePNG(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.png")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A user starts a session with an image, sees the image, forks the session, and logs out.
//
// SPEC G-01
func TestStartForkAndLogOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.open("admin", 1280)
	b.visit("/sessions")
	b.key("n")
	b.run(chromedp.WaitVisible(chromedp.CSS("#text")), chromedp.SendKeys(chromedp.CSS("#text"), "say It is a plan."), chromedp.SetUploadFiles(chromedp.CSS("[name=files]"), []string{picturePNG(t)}))
	b.waitText("[data-files]", "plan.png")
	b.click(".compose .primary")
	b.waitText("#messages", "It is a plan. Done.")
	b.waitFor("document.querySelector('.picture')?.naturalWidth === 40", "the image is loaded")
	src := eval[string](b, "new URL(document.querySelector('.picture').src).pathname")
	if r := w.get(src, w.cookie("admin")); r.status != http.StatusOK || r.header.Get("Content-Type") != "image/png" || !strings.Contains(r.header.Get("Content-Security-Policy"), "sandbox") || r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the image has the status %d and %v", r.status, r.header)
	}
	if r := w.get(src, nil); r.status != http.StatusSeeOther {
		t.Errorf("without a login, the image has the status %d", r.status)
	}
	if r := w.get(strings.TrimSuffix(src, "0")+"7", w.cookie("admin")); r.status != http.StatusNotFound {
		t.Errorf("an image that does not exist has the status %d", r.status)
	}

	from := eval[string](b, "location.pathname")
	b.click("#messages .message.user [title*='up to here']")
	b.waitFor("location.pathname !== "+quote(from)+" && document.querySelector('#head')", "the fork opens")
	b.waitText("#head", "forked")
	if got := eval[string](b, "[...document.querySelectorAll('#head a')].find((a) => a.innerText === 'forked').pathname"); got != from {
		t.Errorf("the fork names %s as its origin, want %s", got, from)
	}
	if text := b.text("#messages"); strings.Contains(text, "It is a plan. Done.") {
		t.Errorf("the fork has messages after the one it was made at: %s", text)
	}
	b.click("[action='/logout'] button")
	b.run(chromedp.WaitVisible(chromedp.CSS("#login")))
	if eval[bool](b, "!!localStorage.getItem('belay-key')") {
		t.Error("the key to act stays after logging out")
	}
	b.run(chromedp.Navigate(w.url+"/sessions"), chromedp.WaitVisible(chromedp.CSS("#login")))
}

// The pages of hooks, runs, jobs and usage work in a browser: a click on a hook explains it, an
// order and a filter can be chosen, and a job is retried or cancelled.
//
// SPEC G-01, G-04
func TestOperatorsPages(t *testing.T) {
	t.Parallel()
	f := sample()
	w := fakeWorld(t, f)
	b := w.open("admin", 1280)

	b.visit("/hooks")
	b.click(".graph a[href*='hook=no-prod']")
	b.waitText("#hook", "no-prod")
	b.visit("/hooks")
	b.click("#all th a[href*='sort=p99']")
	b.waitFor("document.querySelector('#all .name a')?.innerText === 'lint-all'", "the slowest hook is first")

	b.visit("/runs")
	b.run(chromedp.SendKeys(chromedp.CSS(".filter [name=hook]"), "no-prod\r"))
	b.waitFor("new URLSearchParams(location.search).get('hook') === 'no-prod'", "the filter is in the address")
	b.click("#runs .name a")
	b.waitText("main", "The answer of no-prod won.")

	for _, act := range []struct{ what, said string }{{"retry", "runs again now"}, {"cancel", "is cancelled"}} {
		b.visit("/jobs?state=waiting")
		b.click("[hx-post='/jobs/70/" + act.what + "'] button")
		b.waitText("#notice", act.said)
		if want := "POST /v1/jobs/70/" + act.what; !f.wasAsked(want) {
			t.Errorf("the click did not send %s", want)
		}
		if got := eval[string](b, "location.pathname + location.search"); got != "/jobs?state=waiting" {
			t.Errorf("after the click the page is %s", got)
		}
	}

	b.visit("/usage")
	b.click("a[href='/usage?days=7']")
	b.waitFor("document.querySelectorAll('.value.cost').length === 7", "seven days")
}

// A token that may only read sees no buttons to act, on any page.
func TestReadersSeeNoButtons(t *testing.T) {
	t.Parallel()
	f := sample()
	f.self = api.Self{Name: "bob", Roles: []string{"read"}}
	b := open(t, f)
	for _, path := range []string{"/approvals", "/sessions", "/hooks", "/runs", "/jobs", "/usage", "/audit", "/backtest"} {
		if strings.Contains(b.get(path).body, "hx-post") {
			t.Errorf("%s has buttons that the token may not press", path)
		}
	}
}

// A user takes back a message that is still in the queue, and an approval that covers more than
// one call. Then the message never runs, and the next such call asks again. A user who may only
// read sees both, and no buttons.
//
// SPEC G-01, V-02
func TestWithdrawAndRevoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.token("eve", serve.RoleRead)
	b := w.open("admin", 1280)
	a := w.waits(writeNotes)
	b.visit("/approvals/" + a.ID)
	b.click("[value=session]")
	b.waitText("#notice", "Approved for this session")
	page := "/sessions/" + a.Session
	b.visit(page)
	b.waitText("#head", "done")
	if r := w.turn(a.Session, writeNotes); r.Reason != belay.EndTurn {
		t.Fatalf("a call that the approval covers ends with %+v", r)
	}
	w.turn(a.Session, `call shell {"command": "rm -r build"}`) // it parks, so the next message waits
	if _, err := w.client("admin").StartTurn(t.Context(), api.StartTurn{Session: a.Session, Text: "say never"}); err != nil {
		t.Fatal(err)
	}

	if text := w.get(page, w.cookie("eve")).body; !strings.Contains(text, "never") || !strings.Contains(text, "1 approval covers later calls") || strings.Contains(text, "hx-post") {
		t.Errorf("a user who may only read does not see both, or sees buttons: %s", text)
	}

	b.visit(page)
	b.click(".queued button")
	b.waitText("#notice", "The message is withdrawn")
	b.waitFor("!document.querySelector('.queued')", "the message is gone")
	if queue, err := w.client("admin").ListQueue(t.Context(), a.Session); err != nil || len(queue.Turns) > 0 {
		t.Errorf("the queue has %v, %v", queue.Turns, err)
	}

	b.waitText("#grants", "1 approval covers later calls")
	b.click("#grants summary")
	b.waitText("#grants", "every call of write")
	b.click("#grants button")
	b.waitText("#notice", "Revoked")
	b.waitFor("!document.querySelector('#grants')", "nothing covers later calls")
	if s, err := w.client("admin").ReadSession(t.Context(), a.Session); err != nil || len(s.Grants) > 0 {
		t.Errorf("the session has the grants %v, %v", s.Grants, err)
	}
	if _, err := w.client("admin").AbortTurn(t.Context(), a.Session, ""); err != nil {
		t.Fatal(err)
	}
	if r := w.turn(a.Session, writeNotes); r.Reason != belay.EndParked {
		t.Errorf("after revoking, the call ends with %+v, want that it asks", r)
	}
}

// A message that a browser sends again, because the answer was lost, runs one turn.
//
// SPEC V-02
func TestMessageSentAgainRunsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	session := w.session("Again", nil)
	login := w.post("/login", url.Values{"token": {w.secret["admin"]}}, nil, map[string]string{"Accept": "application/json"})
	key := field(t, login.body, "key")
	send := func(message string) {
		t.Helper()
		header := map[string]string{"Belay-Key": key, "Hx-Request": "true", "Idempotency-Key": message}
		if r := w.post("/sessions/"+session+"/turns", url.Values{"text": {"say hello"}}, login.cookies[0], header); r.status != http.StatusNoContent {
			t.Fatalf("the message is answered with %d: %s", r.status, r.body)
		}
	}
	send("one")
	send("one")
	send("two")
	w.turn(session, "say bye") // it runs after all others
	if turns, err := w.client("admin").ListTurns(t.Context(), api.ListTurns{Session: session, Limit: 20}); err != nil || len(turns.Turns) != 3 {
		t.Errorf("there are %d turns, want 3: %v", len(turns.Turns), err)
	}
}

// Five tasks of an operator, from the start page, each with at most four clicks.
//
// SPEC G-01
func TestTasksTakeFewClicks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, project)
	talk, denied := fillWorld(t, w)
	dangerous := ""
	list, err := w.client("admin").ListApprovals(t.Context(), api.ListApprovals{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Approvals {
		if a := &list.Approvals[i]; strings.Contains(string(a.Input), "rm -rf") {
			dangerous = a.ID
		}
	}
	running := w.session("A long task", nil)
	if _, err := w.client("admin").StartTurn(t.Context(), api.StartTurn{Session: running, Text: "slowly it never ends"}); err != nil {
		t.Fatal(err)
	}
	w.model.step <- struct{}{}
	for name, task := range map[string]struct {
		clicks []string
		where  string // an element that then has the text
		want   string
	}{
		"find and deny the dangerous approval":  {[]string{"[data-approval='" + dangerous + "']", "[value=deny]"}, "#notice", "Denied."},
		"why the restart was blocked":           {[]string{"[href='/runs']", "tr:has(.bad) .name a"}, "main", "The answer of no-prod won."},
		"which call was blocked, and its hooks": {[]string{"[href='/sessions']", ".name [href='/sessions/" + denied + "']", ".waterfall a:has(.tool.denied)"}, "#bar", "production is changed by the release job only"},
		"the slowest hook":                      {[]string{"[href='/hooks']"}, ".summary", "Slowest:"},
		"what a session cost":                   {[]string{"[href='/sessions']"}, "tr:has([href='/sessions/" + talk + "'])", "$0.0"},
		"stop a running turn":                   {[]string{"[href='/sessions']", ".name [href='/sessions/" + running + "']", "#head .danger"}, "#head", "aborted"},
	} {
		b := w.open("admin", 1280)
		b.visit("/approvals")
		for _, selector := range task.clicks {
			b.run(chromedp.WaitVisible(chromedp.CSS("body[data-connected]")))
			b.click(selector)
		}
		b.waitText(task.where, task.want)
		if n := len(task.clicks); n > 4 {
			t.Errorf("%s takes %d clicks, want at most 4", name, n)
		}
	}
}
