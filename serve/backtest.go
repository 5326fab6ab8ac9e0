package serve

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// runBacktest replays recorded sessions against the policy of the project as its files are now.
// Hooks with effects are not asked. Trusted programs of hooks run in a sandbox of their own. A
// server runs one backtest at a time, because each uses all processors.
func runBacktest(ctx context.Context, s *Server, _ *request, in *api.Backtest) (backtest.Report, error) {
	select {
	case s.backtesting <- struct{}{}:
		defer func() { <-s.backtesting }()
	case <-ctx.Done():
		return backtest.Report{}, ctx.Err()
	}
	changes := &inspect.Changes{Mode: in.Mode}
	if in.Rules != "" {
		changes.Rules, changes.RulesFile = []byte(in.Rules), "rules"
	}
	opts := &backtest.Options{Since: in.Since, Labels: in.Label, Limit: cmp.Or(in.Limit, mostFound)}
	if opts.Since.IsZero() {
		opts.Since = time.Now().Add(-pastSpan)
	}
	if in.Session != "" {
		opts.Sessions = []string{in.Session}
	}
	report, err := s.project.Backtest(ctx, s.store, changes, opts)
	if mistake, ok := errors.AsType[*assembly.Error](err); ok && mistake.Mistake {
		return backtest.Report{}, invalid("", "%s", mistake.Err)
	}
	if err != nil {
		return backtest.Report{}, err
	}
	return *report, nil
}
