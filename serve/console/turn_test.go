package console_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/belay-run/belay/serve/api"
)

// gated is a project with a hook that denies, a hook that only logs, and a hook for another tool.
var gated = map[string]string{
	"~/hooks/gates.yaml": `hooks:
  - {id: audit, phase: tool.pre, action: log}
  - {id: no-prod, phase: tool.pre, after: [audit], match: {tools: [shell], when: 'args.command.contains("prod")'}, action: {deny: production is closed}}
  - {id: only-edits, phase: tool.pre, match: {tools: [edit]}, action: log}
`,
}

// toolBar returns the key of the first tool call of a turn.
func toolBar(t *testing.T, spans []api.Span) string {
	t.Helper()
	for i := range spans {
		if s := &spans[i]; s.Kind == api.SpanTool {
			return "tool-" + strconv.Itoa(s.Step) + "-" + s.Call
		}
	}
	t.Fatalf("the turn has no call: %+v", spans)
	return ""
}

// inOrder fails unless a page has the texts in this order.
func inOrder(t *testing.T, page string, texts ...string) {
	t.Helper()
	rest := page
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Fatalf("the page has no %q, or not in this order %q:\n%s", text, texts, page)
		}
		rest = after
	}
}

// A bar of a tool explains the call: which hooks were asked and in what order, what each said,
// which won, and which were not asked and why. The page of an old turn does so too, and shows the
// messages of that turn.
//
// SPEC G-03, G-05
func TestToolBarExplainsTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gated)
	cookie := w.cookie("admin")
	session := w.session("Restart", nil)
	w.turn(session, `call shell {"command": "restart prod"}`)
	turn, spans := w.timeline(session)
	bar := "/sessions/" + session + "?" + url.Values{"turn": {turn}, "bar": {toolBar(t, spans)}}.Encode()
	explained := []string{`id="bar"`, "Hooks before the call", "The answer of <b>no-prod</b> won.", "audit", "No objection.", "no-prod", "Denied", "only-edits", "No record: it did not match", "restart prod"}
	inOrder(t, w.get(bar, cookie).body, explained...)

	for i := range 60 { // two messages each, so the first turn leaves the page
		w.turn(session, fmt.Sprintf("say answer %d", i))
	}
	if p := w.get("/sessions/"+session, cookie).body; strings.Contains(p, "restart prod") {
		t.Fatal("the newest messages have the old call: the test needs more turns")
	}
	old := w.get(bar, cookie).body
	inOrder(t, old, append([]string{`id="messages"`, "restart prod", "Newest messages"}, explained...)...)
}

// An approval shows the hook plan of its call: what was asked in which order, and who was not
// asked.
//
// SPEC G-02
func TestApprovalShowsTheHookPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gated)
	a := w.waits(writeNotes)
	cookie := w.cookie("admin")
	inOrder(t, w.get("/approvals/"+a.ID, cookie).body, "1 hook was asked, 2 were not", "No hook objected.", "audit", "No objection.", "no-prod", "did not match", "only-edits", "did not match")

	none := newWorld(t, map[string]string{"~/hooks/gates.yaml": "hooks:\n  - {id: only-edits, phase: tool.pre, match: {tools: [edit]}, action: log}\n"})
	a = none.waits(writeNotes)
	inOrder(t, none.get("/approvals/"+a.ID, none.cookie("admin")).body, "0 hooks were asked, 1 was not", "only-edits", "It did not match this call.")
}

// A part of the waterfall has an address, which works without JavaScript. In a browser, keys and
// buttons lead to it.
//
// SPEC G-03, G-05
func TestZoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gated)
	session := w.session("Zoom", nil)
	w.turn(session, "call shell {\"command\": \"echo one\"}\ncall shell {\"command\": \"echo two\"}")
	turn, spans := w.timeline(session)
	begin, end := spans[0].Begin, time.Time{}
	for i := range spans {
		if spans[i].End.After(end) {
			end = spans[i].End
		}
	}
	rows := func(page string) int { return strings.Count(page, `class="track"`) }
	path := "/sessions/" + session + "?" + url.Values{"turn": {turn}}.Encode()
	cookie := w.cookie("admin")
	all := w.get(path, cookie).body
	first := w.get(path+"&from=0s&to="+(end.Sub(begin)/1000).String(), cookie).body
	if n := rows(first); n == 0 || n >= rows(all) {
		t.Errorf("the first thousandth of the turn has %d of %d bars", n, rows(all))
	}
	inOrder(t, first, "Earlier part", "Later part", "The whole turn", "Zoom out", "Zoom in", "before or after this part")
	for _, wrong := range []string{"&from=x&to=y", "&from=5h&to=6h", "&from=9s&to=1s", "&from=-5s&to=-1s"} {
		if n := rows(w.get(path+wrong, cookie).body); n != rows(all) {
			t.Errorf("%s shows %d bars, want the whole turn with %d", wrong, n, rows(all))
		}
	}
	in := regexp.MustCompile(`id="zoom-in" class="button" href="([^"#]*)#turn"`).FindStringSubmatch(all)
	if in == nil {
		t.Fatalf("there is no link to zoom in: %s", all)
	}

	b := w.open("admin", 1280)
	b.visit(path)
	b.key("+")
	b.run(chromedp.WaitVisible(chromedp.CSS("#zoom-out")))
	once := eval[string](b, "location.search")
	if !strings.Contains(once, "from=") {
		t.Errorf("the address does not have the part: %s", once)
	}
	// A link that htmx has not seen yet loads the whole page, which takes keys when it is connected.
	const ready = " && 'connected' in document.body.dataset"
	b.click("#zoom-in")
	b.waitFor("location.search !== "+quote(once)+ready, "a shorter part")
	twice := eval[string](b, "location.search")
	b.key("-")
	b.waitFor("location.search !== "+quote(twice)+ready, "a longer part")
	b.key("0")
	b.waitFor("!location.search.includes('from=') && !document.querySelector('#zoom-out')", "the whole turn")
}

// A hook that fails says why on the page of the session, at once and only there. Its output is
// text, whatever it contains. What a hook shows to people is there too.
//
// SPEC C-13
func TestFailedHookSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"~/hooks/after.yaml": `hooks:
  - {id: lint, phase: tool.post, run: "printf 'no linter\\n<b>here</b>\\033[31m\\n' >&2; exit 3"}
  - {id: hint, phase: tool.post, run: "echo run the tests too"}
`})
	session := w.session("Lint", nil)
	b := w.open("admin", 1280)
	b.visit("/sessions/" + session)
	w.turn(session, `call list {}`)
	b.waitText("#notes", "Hook lint failed at tool.post")
	b.waitText("#notes", "no linter\n<b>here</b>")
	b.waitText("#notes", "hint says")
	b.waitText("#notes", "run the tests too")
	if n := eval[int](b, "document.querySelectorAll('#notes b').length"); n != 0 {
		t.Error("the output of the hook became elements of the page")
	}
	b.waitText("#head", "done")
	if page := w.get("/sessions/"+session, w.cookie("admin")).body; strings.Contains(page, "no linter") {
		t.Error("the store has the output of the failed hook")
	}
}
