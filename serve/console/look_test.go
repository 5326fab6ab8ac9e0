package console_test

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/belay-run/belay/serve/api"
)

// pictures is where TestPhoneAndAccess writes a picture of every page. `make pictures` sets it.
var pictures = flag.String("pictures", "", "write pictures of the pages into this directory")

// look is a page that a test looks at.
type look struct{ name, path string }

// busyLooks are the pages of a server with sessions of every kind.
func busyLooks(t *testing.T, w *world) []look {
	t.Helper()
	talk, denied := fillWorld(t, w)
	looks := []look{
		{"approvals", "/approvals"},
		{"sessions", "/sessions"},
		{"conversation", "/sessions/" + talk},
		{"queued", "/sessions/" + queuedWorld(t, w)},
		{"new", "/new"},
		{"hooks", "/hooks"},
		{"runs", "/runs"},
		{"jobs", "/jobs"},
		{"usage", "/usage"},
		{"audit", "/audit"},
		{"audit-tools", "/audit?question=tools"},
		{"backtest", "/backtest"},
	}
	list, err := w.client("admin").ListApprovals(t.Context(), api.ListApprovals{Limit: 10})
	if err != nil || len(list.Approvals) < 3 {
		t.Fatalf("the approvals are %v, %v", list, err)
	}
	for i := range list.Approvals {
		a := &list.Approvals[i]
		looks = append(looks, look{"approval-" + a.Tool, "/approvals/" + a.ID})
	}
	turn, spans := w.timeline(denied)
	for i := range spans {
		if s := &spans[i]; s.Outcome == "denied" {
			key := s.Run
			if s.Kind == api.SpanTool {
				key = "tool-" + strconv.Itoa(s.Step) + "-" + s.Call
			}
			looks = append(looks, look{"bar-" + s.Kind, "/sessions/" + denied + "?" + url.Values{"turn": {turn}, "bar": {key}}.Encode()})
		}
	}
	return looks
}

// timeline returns the last turn of a session, and its spans.
func (w *world) timeline(session string) (turn string, spans []api.Span) {
	w.t.Helper()
	turns, err := w.client("admin").ListTurns(w.t.Context(), api.ListTurns{Session: session, Limit: 1})
	if err != nil || len(turns.Turns) == 0 {
		w.t.Fatalf("the turns are %v, %v", turns, err)
	}
	line, err := w.client("admin").ReadTimeline(w.t.Context(), api.ReadTimeline{Session: session, Turn: turns.Turns[0].ID})
	if err != nil {
		w.t.Fatal(err)
	}
	return turns.Turns[0].ID, line.Spans
}

// Every page fits on a phone and on a desk, with much data, with some and with none, in light and
// dark, and has no fault that axe-core finds.
//
// SPEC G-05
func TestPhoneAndAccess(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile("testdata/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("run make browser: %v", err)
	}
	busy, empty, much := newWorld(t, project), newWorld(t, nil), fakeWorld(t, sample())
	for _, scene := range []struct {
		world *world
		as    string
		looks []look
	}{
		{busy, "admin", busyLooks(t, busy)},
		{empty, "admin", []look{{"empty-approvals", "/approvals"}, {"empty-sessions", "/sessions"}, {"empty-hooks", "/hooks"}, {"empty-runs", "/runs"}, {"empty-jobs", "/jobs"}, {"empty-usage", "/usage"}, {"empty-audit", "/audit"}}},
		{empty, "", []look{{"login", "/login"}}},
		{much, "admin", []look{
			{"much-hooks", "/hooks"}, {"much-hook", "/hooks?phase=tool.pre&hook=lint-all"}, {"much-runs", "/runs"}, {"much-run", "/sessions/main%2Fsub/runs/r2"}, {"much-jobs", "/jobs"}, {"much-usage", "/usage?by=team"},
		}},
	} {
		ready := "body[data-connected]"
		if scene.as == "" {
			ready = "#login"
		}
		for _, width := range []int{390, 1280} {
			b := scene.world.open(scene.as, width)
			for _, l := range scene.looks {
				b.run(chromedp.Navigate(scene.world.url+l.path), chromedp.WaitVisible(chromedp.CSS(ready)))
				if over := eval[int](b, "Math.max(document.documentElement.scrollWidth - innerWidth, ...[...document.querySelectorAll('nav#pages')].map((n) => n.scrollWidth - n.clientWidth))"); over > 0 {
					t.Errorf("%s is %d pixels too wide for %d", l.name, over, width)
				}
				_ = eval[bool](b, string(axe)+";true")
				// The pages differ in their colours only, so in the dark only the rules about colours run again.
				for scheme, rules := range map[string]string{"light": "", "dark": `, runOnly: {type: "rule", values: ["color-contrast", "link-in-text-block"]}`} {
					b.scheme(scheme)
					for _, f := range evalPromise[[]string](b, `axe.run({resultTypes: ["violations"]`+rules+`}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`) { // each names the rule and the element
						t.Errorf("%s at %d, %s: %s", l.name, width, scheme, f)
					}
					b.picture(l.name, width, scheme)
				}
			}
		}
	}
}

// picture takes a picture of the page, if somebody wants one.
func (b *browser) picture(name string, width int, scheme string) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll(*pictures, 0o700)
	}
	if err == nil {
		size := map[bool]string{true: "wide", false: "phone"}[width > 600]
		err = os.WriteFile(filepath.Join(*pictures, name+"-"+size+"-"+scheme+".png"), png, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
