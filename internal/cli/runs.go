package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/timeline"
	"github.com/spf13/cobra"
)

// runsOptions are the flags of the command runs.
type runsOptions struct {
	filter   hook.Filter
	states   []string
	since    string
	run      string // the id of one record
	follow   bool
	all      bool
	timeline bool
	json     bool
}

func (a *app) runsCommand() *cobra.Command {
	var o runsOptions
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the records of hooks: what ran, when, how it ended",
		Long: `Every run of a hook leaves a record: when it ran, for how long, how it ended, and what it contributed (as hashes, never as text).
Lists the latest records, the oldest first. With --follow it then prints new records of all processes until you interrupt it.

States: started, completed, skipped, failed, timed_out, backgrounded, interrupted.
A run is interrupted if the process ended before the end of the run was stored: the hook may have run in part or in full.
NAME #2 is the second attempt of a hook, after the turn was resumed.

RUN is the id of a record. The console has the same one, and a trace has it in the attribute belay.run. With --run it prints
this record, and where it is in the trace and in the console.`,
		Example: `  belay runs
  belay runs --session 20261115-k3f9x --timeline
  belay runs --state failed --state timed_out --since 24h
  belay runs --phase tool.pre --follow
  belay runs --run 3bvxjumsxy-1
  belay runs --json | jq -r .subscription | sort | uniq -c`,
		Args: arguments(0, 0, "runs takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(time.Now()); err != nil {
				return err
			}
			return a.records(cmd.Context(), func(r records) error { return a.runs(cmd.Context(), r, &o) })
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.filter.Session, "session", "s", "", "only records of this session (its id, or a prefix of the id)")
	flags.StringVar(&o.filter.Turn, "turn", "", "only records of this turn")
	flags.StringVar(&o.filter.Phase, "phase", "", "only records of this phase")
	flags.StringVar(&o.filter.Subscription, "subscription", "", "only records of this hook, by its subscription id")
	flags.StringArrayVar(&o.states, "state", nil, "only records in this state; may be repeated")
	flags.StringVar(&o.run, "run", "", "only the record with this id, and where it is in the trace and in the console")
	flags.StringVar(&o.since, "since", "", "only hooks that started since then: 15m, 24h or 7d ago, or a time such as 2026-11-15T09:00:00Z")
	flags.IntVarP(&o.filter.Limit, "limit", "n", 50, "list the last N records; 0 for all")
	flags.BoolVarP(&o.follow, "follow", "f", false, "also print new records, until you interrupt the command")
	flags.BoolVar(&o.all, "all", false, "also list records that are only for debugging or for the journal")
	flags.BoolVar(&o.timeline, "timeline", false, "draw the records as bars over time")
	jsonFlag(cmd, &o.json, "print one record per line as JSON")
	exclusive(cmd, "timeline", "follow")
	exclusive(cmd, "timeline", "json")
	exclusive(cmd, "run", "follow")
	exclusive(cmd, "run", "timeline")
	complete(cmd, "state", stateNames())
	_ = cmd.RegisterFlagCompletionFunc("phase", completePhases)
	_ = cmd.RegisterFlagCompletionFunc("session", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completeSessions(nil, nil, word)
	})
	return cmd
}

func stateNames() []string {
	var names []string
	for s := hook.Started; s <= hook.Interrupted; s++ {
		names = append(names, s.String())
	}
	return names
}

func (a *app) runs(ctx context.Context, r records, o *runsOptions) error {
	if o.filter.Session != "" {
		found, err := findRecord(ctx, r, o.filter.Session)
		if err != nil {
			return err
		}
		o.filter.Session = found.ID
	}
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	runs, coming, err := r.Runs(following, o)
	if err != nil {
		return err
	}
	if o.timeline {
		return timeline.Write(a.out, runs)
	}
	if o.run != "" && len(runs) == 0 {
		return fmt.Errorf("no record with the id %q matches: `belay runs --all` lists the ids", o.run)
	}
	if len(runs) == 0 && !o.follow && !o.json {
		a.remarkf("no records match")
		return nil
	}
	v := &runsView{a: a, json: o.json}
	for _, r := range runs {
		v.add(r)
	}
	if err := v.flush(); err != nil || !o.follow {
		if err == nil && o.run != "" && !o.json {
			return a.tellPlaces(&runs[0])
		}
		return err
	}
	return v.follow(ctx, coming, o.shown)
}

// tellPlaces says where else a record is.
func (a *app) tellPlaces(r *hook.Run) error {
	settings, err := a.settings()
	if err != nil || r.Scope.Session == "" {
		return err
	}
	var t table
	t.add(a.onOut.dim("session"), oneLine("belay show "+r.Scope.Session+a.serverFlag()))
	if trace := traceOf(settings, r.Scope.Session, r.Scope.Turn); trace != "" {
		t.add(a.onOut.dim("trace"), trace)
	}
	if console := cmp.Or(settings.Server, settings.Serve.URL); console != "" {
		t.add(a.onOut.dim("console"), strings.TrimSuffix(console, "/")+"/sessions/"+url.PathEscape(r.Scope.Session)+"/runs/"+url.PathEscape(r.ID))
	}
	_, _ = fmt.Fprintln(a.out) // write reports the error
	return t.write(a.out, nil)
}

// complete checks the flags --state, --phase and --since, and sets the filter.
func (o *runsOptions) complete(now time.Time) error {
	if o.run != "" {
		o.filter.Limit = 1
	}
	for _, word := range o.states {
		var state hook.State
		if err := state.UnmarshalText([]byte(word)); err != nil {
			return usage("--state: there is no state %q%s: use one of %s", word, near.Hint(word, stateNames()), strings.Join(stateNames(), ", "))
		}
		o.filter.States = append(o.filter.States, state)
	}
	if o.filter.Phase != "" && !slices.Contains(phaseNames(), o.filter.Phase) {
		return usage("--phase: there is no phase %q%s: `belay hooks phases` lists them", o.filter.Phase, near.Hint(o.filter.Phase, phaseNames()))
	}
	var err error
	o.filter.Since, err = sinceFlag(o.since, now)
	return err
}

// sinceFlag returns the time that the flag --since means. An empty word means the zero time.
func sinceFlag(word string, now time.Time) (time.Time, error) {
	if word == "" {
		return time.Time{}, nil
	}
	if d, err := config.ParseDuration(word); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, word, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("--since: %q is neither a duration (24h, 7d) nor a time (2026-11-15, 2026-11-15T09:00:00Z)", word)
}

// shown reports whether a record should be listed.
func (o *runsOptions) shown(r *hook.Run) bool {
	if o.run != "" {
		return r.ID == o.run
	}
	return o.all || r.Visibility == hook.VisibleInAudit || r.Visibility == hook.VisibleToUser
}

// runsView prints records in columns, or as JSON.
type runsView struct {
	a      *app
	json   bool
	rows   []hook.Run
	widths [6]int
	seen   map[string]hook.State
	headed bool
}

func (v *runsView) add(r hook.Run) {
	if v.seen == nil {
		v.seen = make(map[string]hook.State)
	}
	v.seen[r.ID] = r.State
	v.rows = append(v.rows, r)
}

// flush prints the rows that were added.
func (v *runsView) flush() error {
	rows := v.rows
	v.rows = nil
	if v.json {
		for i := range rows {
			if err := v.a.printJSON(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	now := time.Now()
	cells := make([][]string, len(rows))
	for i := range rows {
		cells[i] = runCells(&rows[i], now)
	}
	head := []string{"TIME", "STATE", "PHASE", "SUBSCRIPTION", "TOOK", "RUN", "WHERE"}
	if !v.headed {
		cells = append([][]string{head}, cells...)
	}
	for _, c := range cells {
		for i := range v.widths {
			v.widths[i] = max(v.widths[i], len(c[i]))
		}
	}
	for _, c := range cells {
		line := fmt.Sprintf("%-*s  %-*s  %-*s  %-*s  %8s  %-*s  %s", v.widths[0], c[0], v.widths[1], c[1], v.widths[2], c[2], v.widths[3], c[3], c[4], v.widths[5], c[5], c[6])
		if !v.headed {
			v.headed = true
			line = v.a.onOut.dim(line)
		}
		if _, err := fmt.Fprintln(v.a.out, v.dress(line, c[1])); err != nil {
			return err
		}
	}
	return nil
}

func (v *runsView) dress(line, state string) string {
	switch state {
	case "failed", "timed_out":
		return v.a.onOut.red(line)
	case "interrupted":
		return v.a.onOut.yellow(line)
	case "skipped":
		return v.a.onOut.dim(line)
	default:
		return line
	}
}

// clock formats a time. It leaves out the date if the time is today.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04:05.000")
	}
	return t.Format("01-02 15:04")
}

// runCells returns the columns of a record.
func runCells(r *hook.Run, now time.Time) []string {
	name := r.Subscription
	if name == "" {
		name = r.JobHandler
	}
	if r.Attempt > 1 || r.Attempt == 1 && r.Job != "" { // a job always shows its attempt, a hook only from the second attempt on
		name += fmt.Sprintf(" #%d", r.Attempt)
	}
	lasted := "-"
	if r.State.Final() && r.State != hook.Skipped && r.State != hook.Backgrounded {
		lasted = took(time.Duration(r.Latency))
	}
	words := []string{r.Scope.String()}
	if r.Severity > hook.SeverityPass {
		words = append(words, r.Severity.String())
	}
	for _, d := range r.Contributed {
		words = append(words, "+"+d.Kind)
	}
	for _, n := range r.Audit {
		words = append(words, "audit:"+n.Code)
	}
	if r.Class != "" {
		words = append(words, string(r.Class))
	}
	if r.Shadow {
		words = append(words, "(shadow)")
	}
	return []string{clock(r.Started, now), r.State.String(), r.Phase, name, lasted, r.ID, strings.Join(words, " ")}
}

// follow prints new records for which shown reports true, except those that are already
// listed with the same state.
func (v *runsView) follow(ctx context.Context, coming <-chan followed, shown func(*hook.Run) bool) error {
	for f := range coming {
		r := f.run
		if f.err != nil {
			return f.err
		}
		if known, ok := v.seen[r.ID]; ok && known == r.State || !shown(&r) {
			continue
		}
		v.add(r)
		if err := v.flush(); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
