package console_test

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/belay-run/belay/telemetry"
)

// With the address of a trace viewer, each turn has a link to its trace.
//
// SPEC O-04
func TestTurnLinksToItsTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	session := w.session("Traced", nil)
	w.turn(session, "hello")
	turn, _ := w.timeline(session)
	b := w.open("admin", 1280)
	b.visit("/sessions/" + session)
	b.waitText("#turn", "Trace")
	if got, want := eval[string](b, "document.querySelector('#trace').href"), "https://traces.example/"+telemetry.TraceID(session, turn).String(); got != want {
		t.Errorf("the link is %s, want %s", got, want)
	}
}

// A person finds out who denied what, and tries other rules on the sessions.
//
// SPEC O-02, O-03
func TestAuditAndBacktest(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile("testdata/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("run make browser: %v", err)
	}
	w := newWorld(t, project)
	fillWorld(t, w)
	for _, width := range []int{390, 1280} {
		b := w.open("admin", width)
		b.visit("/audit")
		b.waitText("#audit", "no-prod")
		b.waitText("#audit", "production is changed by the release job only")
		b.click(".chips a[href='/audit?question=tools']")
		b.waitText("#audit", "shell")
		b.click(".chips a[href='/audit?days=1&question=tools']")
		b.waitFor("location.search === '?days=1&question=tools'", "the range is in the address")

		b.click("a[href='/backtest']")
		b.waitText("#backtest", "Run the backtest")
		b.picture("backtest", width, "light")
		b.click("#backtest button.primary")
		b.waitText("#report-title", "Nothing would differ")
		b.click("#backtest summary")
		b.run(chromedp.SendKeys(chromedp.CSS("#rules"), "permit: {rules: [deny read(README.md)]}"))
		b.click("#backtest button.primary")
		b.waitText("#report-title", "1 would differ")
		b.waitText(".difference", "README.md")
		b.waitText(".was-now", "denied by")
		b.run(chromedp.ScrollIntoView(chromedp.CSS("#report-title")))
		if over := eval[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("the report is %d pixels too wide for %d", over, width)
		}
		_ = eval[bool](b, string(axe)+";true")
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			for _, f := range evalPromise[[]string](b, `axe.run({resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`) {
				t.Errorf("the report at %d, %s: %s", width, scheme, f)
			}
			b.picture("backtest-report", width, scheme)
		}
		b.run(chromedp.SendKeys(chromedp.CSS("#rules"), "]"))
		b.click("#backtest button.primary")
		b.waitText("#notice", "Rules:1: value is not allowed in this context.")
		b.click(".difference .more")
		b.waitText("#messages", "README.md")
	}
}
