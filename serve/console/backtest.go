package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/serve/api"
)

// exampleRules shows the form of the rules.
const exampleRules = "permit:\n  rules:\n    - deny shell(npm publish *)"

// backtestView is what the page of backtests shows before one has run.
type backtestView struct {
	Modes   []string
	Session string
}

// backtests shows the form of a backtest.
func backtests(_ context.Context, v *visit) (templ.Component, error) {
	if v.isLimited() {
		return limitedPage(v, "Backtest", "/audit", "Hooks and rules work for all tenants"), nil
	}
	if !v.may("run") {
		return nil, &api.Problem{Status: http.StatusForbidden, Title: "Not allowed", Detail: "A backtest needs a token with the role run."}
	}
	b := backtestView{Session: v.query("session")}
	for _, m := range permit.Modes() {
		b.Modes = append(b.Modes, m.Name)
	}
	return backtestPage(v, &b), nil
}

// runBacktest runs a backtest and shows its report.
func runBacktest(ctx context.Context, v *visit) error {
	days, err := strconv.Atoi(v.r.FormValue("days"))
	if err != nil || !slices.Contains(auditRanges, days) {
		days = auditRanges[1]
	}
	in := api.Backtest{Mode: v.r.FormValue("mode"), Rules: strings.TrimSpace(v.r.FormValue("rules")), Session: strings.TrimSpace(v.r.FormValue("session")), Since: daysAgo(days), Limit: 200}
	report, err := v.Backtest(ctx, in)
	if err != nil {
		return err
	}
	v.show(http.StatusOK, backtestReport(&report))
	return nil
}

// differ returns how many outcomes would differ.
func differ(r *backtest.Report) int { return len(r.Differences) + r.Omitted }

// whatDiffers returns the call or the text of a difference in one line.
func whatDiffers(d *backtest.Difference) string {
	if d.Kind == backtest.KindPrompt {
		return d.Text
	}
	return d.Tool + " " + string(d.Input)
}

// outcomeTone returns the class of an outcome.
func outcomeTone(o backtest.Word) string {
	switch o {
	case backtest.Denied, backtest.Halted:
		return "bad"
	case backtest.Asked:
		return "wait"
	case backtest.Allowed, backtest.Kept:
		return "good"
	default:
		return ""
	}
}

// outcomeWords returns who decided, and why.
func outcomeWords(o *backtest.Outcome) string {
	var text strings.Builder
	if o.By != "" {
		text.WriteString("by " + o.By)
	}
	if o.Reason != "" {
		fmt.Fprintf(&text, ": %s", cut(o.Reason, 300))
	}
	if o.Approved != "" {
		text.WriteString(", approved by " + o.Approved)
	}
	if o.Refused != "" {
		text.WriteString(", refused by " + o.Refused)
	}
	return text.String()
}

// orNothing returns a number, or nothing for 0.
func orNothing(n int) string {
	if n == 0 {
		return ""
	}
	return count(n)
}

// notReplayed lists why calls were not replayed.
func notReplayed(r *backtest.Report) string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(r.NotReplayed)) {
		parts = append(parts, count(r.NotReplayed[why])+" "+why)
	}
	return strings.Join(parts, ", ")
}
