package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/auditreport"
	"github.com/belay-run/belay/serve/api"
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
				report, err := r.Audit(ctx, q, filter)
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

// auditSource are the records of a store for the questions.
type auditSource struct {
	pastRecords

	journal hook.ListJournal
}

var _ auditreport.Source = auditSource{}

// Runs yields the records of hooks.
func (s auditSource) Runs(ctx context.Context, since time.Time, states []hook.State) iter.Seq2[hook.Run, error] {
	return s.journal.List(ctx, hook.Filter{Since: since, States: states})
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

func (r *storeRecords) Audit(ctx context.Context, q *auditreport.Question, filter auditreport.Filter) (*auditreport.Report, error) {
	journal, ok := r.store.Journal().(hook.ListJournal)
	if !ok {
		return nil, errors.New("this store cannot list the records of hooks")
	}
	return q.Ask(ctx, auditSource{pastRecords{r}, journal}, filter)
}

// mostAudited is how many rows a server returns at most.
const mostAudited = 10_000

// Audit lets the server answer. It reads all records, and knows which ones the token may see.
func (r *serverRecords) Audit(ctx context.Context, q *auditreport.Question, filter auditreport.Filter) (*auditreport.Report, error) {
	in := api.AskAudit{Question: q.Name, Since: filter.Since, Session: filter.Session, Label: filter.Labels, Limit: mostAudited}
	if q.Name == "cost" {
		in.By = filter.By
	}
	if in.Since.IsZero() {
		in.Since = time.Unix(0, 0).UTC() // without a time, a server answers for the last days
	}
	found, err := r.c.AskAudit(ctx, in)
	if err != nil {
		return nil, err
	}
	report := &auditreport.Report{Empty: found.Empty, Omitted: found.Total - len(found.Rows)}
	for _, c := range found.Columns {
		report.Columns = append(report.Columns, auditreport.Column{Name: c.Name, Kind: auditreport.Kind(c.Kind)})
	}
	for _, row := range found.Rows {
		if len(row) != len(report.Columns) {
			return nil, fmt.Errorf("the server has answered with %d cells for %d columns", len(row), len(report.Columns))
		}
		cells := make([]any, len(row))
		for i, text := range row {
			if cells[i], err = auditreport.Cell(report.Columns[i].Kind, text); err != nil {
				return nil, fmt.Errorf("the server has answered with a cell that cannot be read: %w", err)
			}
		}
		report.Rows = append(report.Rows, cells)
	}
	return report, nil
}
