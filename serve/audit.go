package serve

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/auditreport"
	"github.com/belay-run/belay/serve/api"
)

// The defaults of audits and backtests.
const (
	pastSpan  = 7 * 24 * time.Hour
	mostFound = 1000
)

func askAudit(ctx context.Context, s *Server, q *request, in *api.AskAudit) (api.AuditReport, error) {
	out := api.AuditReport{Columns: []api.AuditColumn{}, Rows: [][]string{}}
	question := auditreport.Find(in.Question)
	if question == nil {
		return out, notFound("question", in.Question)
	}
	if in.Session != "" && question.Name == "cost" {
		return out, invalid("/session", "costs are those of all sessions: leave session out, or select sessions with label")
	}
	journal, err := s.journal()
	if err != nil {
		return out, err
	}
	filter := auditreport.Filter{Since: in.Since, Session: in.Session, Labels: maps.Clone(q.token.Labels), By: in.By}
	if filter.Labels == nil {
		filter.Labels = make(map[string]string)
	}
	for name, value := range in.Label {
		if limit, limited := filter.Labels[name]; limited && limit != value {
			return out, nil
		}
		filter.Labels[name] = value
	}
	if filter.Since.IsZero() {
		filter.Since = time.Now().Add(-pastSpan)
	}
	select { // each answer reads the records of the whole time
	case s.auditing <- struct{}{}:
		defer func() { <-s.auditing }()
	case <-ctx.Done():
		return out, ctx.Err()
	}
	report, err := question.Ask(ctx, &auditSource{s.store, journal, q.token}, filter)
	if err != nil {
		return out, err
	}
	for _, c := range report.Columns {
		out.Columns = append(out.Columns, api.AuditColumn{Name: c.Name, Kind: string(c.Kind)})
	}
	out.Total = len(report.Rows)
	for _, row := range report.Rows[:min(len(report.Rows), cmp.Or(in.Limit, mostFound))] {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = auditreport.Plain(cell)
		}
		out.Rows = append(out.Rows, cells)
	}
	if out.Total == 0 {
		out.Empty = report.Empty
	}
	return out, nil
}

// auditSource are the records of the store.
type auditSource struct {
	Store

	journal hook.ListJournal
	token   *Token
}

var _ auditreport.Source = (*auditSource)(nil)

// Runs yields the records of hooks, as the token may see them.
func (a *auditSource) Runs(ctx context.Context, since time.Time, states []hook.State) iter.Seq2[hook.Run, error] {
	return func(yield func(hook.Run, error) bool) {
		for r, err := range a.journal.List(ctx, hook.Filter{Since: since, States: states}) {
			if !yield(a.token.run(r), err) || err != nil {
				return
			}
		}
	}
}

// Usage adds up what sessions have used.
func (a *auditSource) Usage(ctx context.Context, labels map[string]string, since time.Time, by string) ([]belay.UsageSum, error) {
	store, ok := a.Store.(belay.UsageStore)
	if !ok {
		return nil, errors.New("the store's usage cannot be added up")
	}
	filter := belay.UsageFilter{Since: since, Labels: labels}
	key, label, _ := strings.Cut(by, ":")
	filter.By, filter.Label = belay.UsageKey(key), label
	return store.Usage(ctx, filter)
}
