package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/backtest"
)

// comparison is how a report compares with an expected one.
type comparison struct {
	// unexpected are differences that only the report has. missing are those that only the
	// expected report has. omitted is how many more the report does not list.
	unexpected, missing []*backtest.Difference
	omitted             int
	// silent says for each hook that was asked only when the expected report was written why it
	// was not asked now.
	silent []string
	// fewer says what was replayed less often than when the expected report was written.
	fewer []string
}

// compareBacktests compares a report with an expected one.
func compareBacktests(expected, got *backtest.Report) *comparison {
	c := &comparison{omitted: got.Omitted}
	left := make(map[string]int)
	for i := range expected.Differences {
		left[differenceKey(&expected.Differences[i])]++
	}
	for i := range got.Differences {
		d := &got.Differences[i]
		if k := differenceKey(d); left[k] > 0 {
			left[k]--
		} else {
			c.unexpected = append(c.unexpected, d)
		}
	}
	for i := range expected.Differences {
		d := &expected.Differences[i]
		if k := differenceKey(d); left[k] > 0 {
			left[k]--
			c.missing = append(c.missing, d)
		}
	}
	c.compareHooks(expected, got)
	for _, n := range []struct {
		then, now int
		noun      string
	}{{expected.Sessions, got.Sessions, "session"}, {expected.Prompts, got.Prompts, "message"}, {expected.Calls, got.Calls, "call"}} {
		if n.now < n.then {
			c.fewer = append(c.fewer, fmt.Sprintf("the expected report replayed %s, and this one %s", counted(n.then, n.noun), orNone(n.now)))
		}
	}
	return c
}

// orNone returns a number, or a word for 0.
func orNone(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// compareHooks finds the hooks that were asked only when the expected report was written. Nobody
// knows what they would answer, even if no outcome differs. A new hook that nothing waits for
// would answer nothing.
func (c *comparison) compareHooks(expected, got *backtest.Report) {
	for _, n := range got.NotAsked {
		asked := slices.ContainsFunc(expected.Hooks, func(e backtest.HookTotal) bool { return e.ID == n.ID && e.Phase == n.Phase })
		if (asked || !n.Idle) && !slices.ContainsFunc(expected.NotAsked, func(e backtest.NotAsked) bool { return e.ID == n.ID && e.Phase == n.Phase }) {
			c.silent = append(c.silent, fmt.Sprintf("%s at %s: %s", n.ID, n.Phase, n.Why))
		}
	}
	for i := range expected.Hooks {
		e := &expected.Hooks[i]
		if e.Asked == 0 || e.Phase == "" || slices.ContainsFunc(got.NotAsked, func(n backtest.NotAsked) bool { return n.ID == e.ID && n.Phase == e.Phase }) {
			continue
		}
		at := slices.IndexFunc(got.Hooks, func(h backtest.HookTotal) bool { return h.ID == e.ID && h.Phase == e.Phase })
		switch {
		case at < 0:
			c.silent = append(c.silent, fmt.Sprintf("%s at %s: it is not in the policy", e.ID, e.Phase))
		case got.Hooks[at].Asked == 0:
			c.silent = append(c.silent, fmt.Sprintf("%s at %s: it was not called", e.ID, e.Phase))
		}
	}
}

// differs reports whether the report is not the expected one.
func (c *comparison) differs() bool {
	return len(c.unexpected)+len(c.missing)+c.omitted+len(c.silent)+len(c.fewer) > 0
}

// tellComparison prints what the report cannot show, and returns an error if the report is not
// the expected one. list also lists the differences, which a report in text has listed already.
func (a *app) tellComparison(c *comparison, list bool) error {
	if list {
		for _, d := range c.unexpected {
			a.remarkf("not expected: %s", oneLine(differenceKey(d)))
		}
		for _, d := range c.missing {
			a.remarkf("expected, but not found: %s", oneLine(differenceKey(d)))
		}
	}
	for _, text := range c.silent {
		a.remarkf("not asked here: %s", oneLine(text))
	}
	for _, text := range c.fewer {
		a.remarkf("%s", text)
	}
	switch {
	case len(c.silent) > 0:
		return fmt.Errorf("the reports cannot be compared: %s asked when the expected report was written, and not now", counted(len(c.silent), "hook"))
	case len(c.fewer) > 0:
		return errors.New("the reports cannot be compared: less was replayed than when the expected report was written")
	case c.differs():
		return fmt.Errorf("the differences are not the expected ones: %d more, %d fewer", len(c.unexpected)+c.omitted, len(c.missing))
	default:
		return nil
	}
}

// differenceKey identifies a difference in two reports. Reasons may change.
func differenceKey(d *backtest.Difference) string {
	return fmt.Sprintf("%s, message %d: %s %s %s: %s -> %s", d.Session, d.Message, d.Kind, d.Call, d.Tool, identity(&d.Was), identity(&d.Now))
}

// identity is what must be equal in two reports.
func identity(o *backtest.Outcome) string {
	var text strings.Builder
	text.WriteString(string(o.Outcome))
	for _, part := range []string{o.By, o.Approved, o.Refused, string(o.Input)} {
		if part != "" {
			text.WriteString(" " + part)
		}
	}
	if o.Text != nil {
		fmt.Fprintf(&text, " %q", *o.Text)
	}
	return text.String()
}
