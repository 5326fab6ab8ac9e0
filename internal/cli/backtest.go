package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/permit"
	"github.com/spf13/cobra"
)

// backtestOptions are the flags of the command backtest.
type backtestOptions struct {
	changes       inspect.Changes
	rules, expect string
	since         string
	labels        []string
	run           backtest.Options
	json          bool
}

func (a *app) backtestCommand() *cobra.Command {
	var o backtestOptions
	cmd := &cobra.Command{
		Use:   "backtest",
		Short: "Try changed hooks and rules on recorded sessions",
		Long: `Asks the hooks and the permission check, as their files are now, about the user messages, tool calls and results of recorded
sessions. Lists everything whose outcome would differ from what happened: what was allowed and would be denied, by whom and why,
and the reverse. No model and no tool runs.

--hooks DIR uses DIR in place of the project's .belay; it has the same form. --rules FILE replaces the rules and guards of the
settings by those under the key permit of FILE. --mode tries another mode.

Programs of hooks run only if they are trusted, in the sandbox, where they change nothing and have no network. Webhooks, and
programs on a machine without a sandbox, are asked only with --allow-effects.

The exit code is 1 if something differs. With --expect FILE, which is the output of an earlier backtest with --json, it is 1 if
the differences are not those of FILE, if fewer sessions, messages or calls were replayed, or if a hook was not asked that was
asked then.`,
		Example: `  belay backtest --since 7d
  belay backtest --hooks ../policy --session 20261115-k3f9x
  belay backtest --rules stricter.yaml --mode strict
  belay backtest --hooks policy --json > expected.json
  belay backtest --hooks policy --expect expected.json`,
		Args: arguments(0, 0, "backtest takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			expected, err := o.complete(a.at, time.Now())
			if err != nil {
				return err
			}
			return a.records(cmd.Context(), func(r records) error { return a.backtest(cmd.Context(), r, &o, expected) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.changes.Hooks, "hooks", "", "a directory that replaces .belay of the project")
	flags.StringVar(&o.rules, "rules", "", "a file whose rules and guards replace those of the settings")
	flags.StringVar(&o.changes.Mode, "mode", "", "the mode of the permission check; by default, that of the settings")
	flags.StringVar(&o.since, "since", "", "only messages since then: 24h or 7d ago, or a time such as 2026-11-15")
	flags.StringArrayVarP(&o.run.Sessions, "session", "s", nil, "only this session and its subagents; may be repeated")
	flags.StringArrayVar(&o.labels, "label", nil, "only sessions with this label: KEY=VALUE; may be repeated")
	flags.BoolVar(&o.run.AllowEffects, "allow-effects", false, "also ask hooks that may have effects, as in a real turn")
	flags.StringVar(&o.expect, "expect", "", "a report (--json) with the differences that are expected")
	jsonFlag(cmd, &o.json, "print one JSON object")
	var modes []string
	for _, m := range permit.Modes() {
		modes = append(modes, m.Name)
	}
	complete(cmd, "mode", modes)
	_ = cmd.RegisterFlagCompletionFunc("session", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completeSessions(nil, nil, word)
	})
	return cmd
}

// complete checks the flags and reads the files that they name. at returns the path of such a
// name. It returns the expected report, or nil.
func (o *backtestOptions) complete(at func(string) string, now time.Time) (expected *backtest.Report, err error) {
	if o.run.Since, err = sinceFlag(o.since, now); err != nil {
		return nil, err
	}
	if o.run.Labels, err = labelsOf("--label: ", o.labels, false); err != nil {
		return nil, err
	}
	o.changes.Hooks = at(o.changes.Hooks)
	if o.rules != "" {
		if o.changes.Rules, err = os.ReadFile(at(o.rules)); err != nil {
			return nil, usage("--rules: %w", err)
		}
		o.changes.RulesFile = o.rules
	}
	if o.expect == "" {
		return nil, nil
	}
	data, err := os.ReadFile(at(o.expect))
	if err != nil {
		return nil, usage("--expect: %w", err)
	}
	if err := json.Unmarshal(data, &expected); err != nil {
		return nil, usage("--expect: %s is not a report: %w: write one with `belay backtest --json`", o.expect, err)
	}
	if expected == nil || expected.Differences == nil { // JSON of something else
		return nil, usage("--expect: %s is not a report: it has no differences: write one with `belay backtest --json`", o.expect)
	}
	return expected, nil
}

// pastRecords are the records for a backtest and for the questions of an audit.
type pastRecords struct{ records }

var _ backtest.Records = pastRecords{}

// Sessions yields the sessions that match.
func (r pastRecords) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		for s, err := range r.records.Sessions(ctx, filter) {
			info := belay.SessionInfo{ID: s.ID, Created: s.Created, Changed: s.Changed, Last: s.Last, Labels: s.Labels}
			info.State.Agent, info.State.Grants, info.State.ForkedFrom = s.Agent, s.Grants, s.ForkedFrom
			info.State.Last, info.State.Ending = s.Reason, s.Ending
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

func (a *app) backtest(ctx context.Context, r records, o *backtestOptions, expected *backtest.Report) error {
	for i, word := range o.run.Sessions {
		found, err := findRecord(ctx, r, word)
		if err != nil {
			return err
		}
		o.run.Sessions[i] = found.ID
	}
	project := &inspect.Project{From: a.assembler(), Settings: a.settings}
	report, err := project.Backtest(ctx, pastRecords{r}, &o.changes, &o.run)
	if err != nil {
		return err
	}
	var compared *comparison
	if expected != nil {
		compared = compareBacktests(expected, report)
	}
	if o.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		a.tellBacktest(report, compared)
	}
	if compared != nil {
		return a.tellComparison(compared, o.json)
	}
	if len(report.Differences) > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

// tellBacktest prints a report. If it was compared with an expected one, only the differences
// that are not as expected are listed.
func (a *app) tellBacktest(r *backtest.Report, compared *comparison) {
	if compared != nil {
		for _, d := range compared.unexpected {
			a.tellDifference("not expected · ", d)
		}
		for _, d := range compared.missing {
			a.tellDifference("expected, but not found · ", d)
		}
	} else {
		for i := range r.Differences {
			a.tellDifference("", &r.Differences[i])
		}
	}
	if r.Omitted > 0 {
		fmt.Fprintf(a.out, "%d more differences are not listed: limit the sessions with --session, --label or --since\n\n", r.Omitted)
	}
	fmt.Fprintf(a.out, "%s  %s\n", a.onOut.bold(verdictOf(r, compared)), a.onOut.dim(fmt.Sprintf("%s · %s · %s · %s · %s",
		counted(r.Sessions, "session"), counted(r.Prompts, "message"), counted(r.Calls, "call"), counted(r.Results, "result"), took(time.Duration(r.Took)))))
	if len(r.Hooks) > 0 {
		fmt.Fprintln(a.out)
		t := new(table)
		t.add("HOOK", "PHASE", "ASKED", "DENIED", "ASKS", "REWROTE", "FAILED", "TIMED OUT", "SLOWEST", "TOTAL")
		for i := range r.Hooks {
			h := &r.Hooks[i]
			name := h.ID
			if h.Shadow {
				name += " (shadow)"
			}
			t.add(name, h.Phase, fmt.Sprint(h.Asked), orDash(h.Denied), orDash(h.Asks), orDash(h.Rewrote), orDash(h.Failed), orDash(h.TimedOut), took(time.Duration(h.Slowest)), took(time.Duration(h.Time)))
		}
		_ = t.write(a.out, a.onOut.dim) // ignore errors, as for the other lines here
	}
	for _, text := range r.Notes {
		fmt.Fprintf(a.out, "\nnote: %s\n", visible.All(oneLine(text)))
	}
	if len(r.NotAsked) > 0 {
		fmt.Fprintln(a.out, "\nnot asked:")
		for _, n := range r.NotAsked {
			fmt.Fprintf(a.out, "  %s at %s: %s\n", n.ID, n.Phase, n.Why)
		}
	}
	if r.Unknown > 0 {
		fmt.Fprintf(a.out, "%s: a hook that was not asked had decided or rewritten it: use --allow-effects to ask the hook\n", counted(r.Unknown, "unknown outcome"))
	}
	if len(r.NotReplayed) > 0 {
		var parts []string
		for why, n := range r.NotReplayed {
			parts = append(parts, fmt.Sprintf("%d %s", n, why))
		}
		slices.Sort(parts)
		fmt.Fprintf(a.out, "calls without an answer of hooks, which cannot be replayed: %s\n", strings.Join(parts, ", "))
	}
}

// verdictOf returns the result of a backtest in a few words.
func verdictOf(r *backtest.Report, compared *comparison) string {
	all := len(r.Differences) + r.Omitted
	switch {
	case compared != nil && !compared.differs():
		switch all {
		case 0:
			return "nothing differs, as expected"
		case 1:
			return "1 differs, as expected"
		}
		return fmt.Sprintf("%d differ, as expected", all)
	case compared != nil && all > 0:
		return fmt.Sprintf("%d would differ, %d of them not expected", all, len(compared.unexpected)+r.Omitted)
	case all > 0:
		return fmt.Sprintf("%d would differ", all)
	case r.Sessions == 0:
		return "no session was replayed"
	case r.Unknown > 0 || slices.ContainsFunc(r.NotAsked, func(n backtest.NotAsked) bool { return !n.Idle }):
		return "nothing differs, but not all hooks were asked"
	default:
		return "nothing differs"
	}
}

// orDash returns a number, or a dash for 0.
func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// tellDifference prints one difference. before is the beginning of its first line.
func (a *app) tellDifference(before string, d *backtest.Difference) {
	what := oneLine(d.Text)
	if d.Kind != backtest.KindPrompt {
		what = oneLine(d.Tool + " " + string(d.Input))
	}
	fmt.Fprintf(a.out, "%s%s  %s\n", before, a.onOut.dim(fmt.Sprintf("%s · message %d · %s", d.Session, d.Message, d.Kind)), a.onOut.bold(short(what, 100)))
	fmt.Fprintf(a.out, "  was  %s\n  now  %s\n", a.toldOutcome(&d.Was), a.toldOutcome(&d.Now))
	if d.Note != "" {
		fmt.Fprintf(a.out, "       %s\n", a.onOut.dim(d.Note))
	}
	fmt.Fprintln(a.out)
}

// toldOutcome returns an outcome as one line.
func (a *app) toldOutcome(o *backtest.Outcome) string {
	text := string(o.Outcome)
	switch o.Outcome {
	case backtest.Denied, backtest.Halted:
		text = a.onOut.red(text)
	case backtest.Asked:
		text = a.onOut.yellow(text)
	case backtest.Allowed, backtest.Kept:
		text = a.onOut.green(text)
	default:
	}
	if o.By != "" {
		text += " by " + oneLine(o.By)
	}
	if o.Reason != "" {
		text += ": " + short(oneLine(o.Reason), 160)
	}
	if o.Approved != "" {
		text += ", approved by " + oneLine(o.Approved)
	}
	if o.Refused != "" {
		text += ", refused by " + oneLine(o.Refused)
	}
	if len(o.RewrittenBy) > 0 {
		text += ", rewritten by " + strings.Join(o.RewrittenBy, ", ")
	}
	switch {
	case o.Input != nil:
		text += ": " + short(oneLine(string(o.Input)), 160)
	case o.Text != nil:
		text += ": " + short(oneLine(*o.Text), 160)
	}
	return text
}
