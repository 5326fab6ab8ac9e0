package cli

import (
	"context"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/auditreport"
	"github.com/spf13/cobra"
)

// auditOptions are the flags that all questions share.
type auditOptions struct {
	since, session, format string
	labels                 []string
	limit                  int

	from  time.Time         // of --since
	label map[string]string // of --label
}

// auditFormats are the values of --format.
var auditFormats = []string{"text", "jsonl", "csv"}

func (a *app) auditCommand() *cobra.Command {
	audit := parent(&cobra.Command{
		Use:   "audit",
		Short: "Answer questions about what agents did, and check that no record was changed",
		Long: `Answers questions over all sessions and machines of a store, or of a server with --server: what was denied and by whom, which
hooks are slow or fail, who approved what, which grants are in force, what was spent, what a session touched.

The records of hooks, the approvals and the grants are in a chain of hashes. "belay audit verify" finds rows that something other
than Belay has changed, removed or inserted.`,
		Example: `  belay audit denials --since 7d
  belay audit approvals --label team=billing --format csv
  belay audit touched --session 20261115-k3f9x
  belay audit verify`,
	})
	questions := auditreport.Questions()
	for i := range questions {
		audit.AddCommand(a.auditQuestion(&questions[i]))
	}
	audit.AddCommand(a.auditVerify(), a.auditAnchor(), a.auditExport())
	return audit
}

func (a *app) auditQuestion(q *auditreport.Question) *cobra.Command {
	var o auditOptions
	by := "agent"
	cmd := &cobra.Command{
		Use:     q.Name,
		Short:   q.Short,
		Long:    q.Long,
		Example: "  belay audit " + q.Name + " --since 7d\n  belay audit " + q.Name + " --format csv > " + q.Name + ".csv",
		Args:    arguments(0, 0, "audit "+q.Name+" takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := o.complete(time.Now()); err != nil {
				return err
			}
			return a.records(ctx, func(r records) error {
				filter := auditreport.Filter{Since: o.from, Labels: o.label, By: by}
				if o.session != "" {
					found, err := findRecord(ctx, r, o.session)
					if err != nil {
						return err
					}
					filter.Session = found.ID
				}
				report, err := q.Ask(ctx, auditSource{pastRecords{r}}, filter)
				if err != nil {
					return err
				}
				return a.writeReport(report, &o)
			})
		},
	}
	flags := cmd.Flags()
	if q.Name != "grants" {
		flags.StringVar(&o.since, "since", "", "only since then: 15m, 24h or 7d ago, or a time such as 2026-11-15T09:00:00Z")
	}
	if q.Name == "cost" {
		flags.StringVar(&by, "by", by, "add up by agent, day, model or label:NAME")
		complete(cmd, "by", []string{"agent", "day", "model", "label:"})
	} else {
		flags.StringVarP(&o.session, "session", "s", "", "only this session and its subagents (its id, or a prefix of the id)")
		_ = cmd.RegisterFlagCompletionFunc("session", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			return a.completeSessions(nil, nil, word)
		})
	}
	flags.StringArrayVarP(&o.labels, "label", "l", nil, "only sessions with this label, as NAME=VALUE; may be repeated")
	flags.StringVar(&o.format, "format", "text", "text, jsonl (one JSON object per line) or csv")
	flags.IntVarP(&o.limit, "limit", "n", 0, "print the first N rows; 0 for all")
	complete(cmd, "format", auditFormats)
	return cmd
}

// complete checks the flags.
func (o *auditOptions) complete(now time.Time) (err error) {
	since := runsOptions{since: o.since}
	if err := since.complete(now); err != nil {
		return err
	}
	o.from = since.filter.Since
	if o.label, err = labelsOf("--label: ", o.labels, false); err != nil {
		return err
	}
	if o.limit < 0 {
		return usage("--limit must not be negative")
	}
	if slices.Contains(auditFormats, o.format) {
		return nil
	}
	return usage("--format: there is no format %q: use text, jsonl or csv", o.format)
}

// auditSource are the records for the questions.
type auditSource struct{ pastRecords }

var _ auditreport.Source = auditSource{}

// Runs returns the records of hooks.
func (s auditSource) Runs(ctx context.Context, since time.Time, states []hook.State) ([]hook.Run, error) {
	o := &runsOptions{all: true, filter: hook.Filter{Since: since, States: states}}
	for _, state := range states {
		o.states = append(o.states, state.String())
	}
	all, _, err := s.records.Runs(ctx, o)
	return all, err
}

// Usage adds up what sessions have used.
func (s auditSource) Usage(ctx context.Context, labels map[string]string, since time.Time, by string) ([]belay.UsageSum, error) {
	rows, err := s.records.Usage(ctx, labels, since, by)
	sums := make([]belay.UsageSum, len(rows))
	for i, r := range rows {
		sums[i] = belay.UsageSum{Key: r.Key, Usage: r.Usage, Turns: r.Turns, Sessions: r.Sessions}
	}
	return sums, err
}
