package riverjobs

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/riverdriver"
)

// Remove does what Queue says.
func (q *engine[TTx]) Remove(ctx context.Context, tx TTx, session string) (bool, error) {
	placeholder := "?1"
	if q.driver.DatabaseName() == riverdriver.DatabaseNamePostgres {
		placeholder = "$1"
	}
	where := " FROM river_job WHERE queue = '" + queue + "' AND args -> 'scope' ->> 'session' = " + placeholder
	exec := q.driver.UnwrapExecutor(tx)
	if err := exec.Exec(ctx, "DELETE"+where+" AND state <> 'running'", session); err != nil {
		return false, fmt.Errorf("remove jobs: %w", err)
	}
	var running int
	if err := exec.QueryRow(ctx, "SELECT count(*)"+where, session).Scan(&running); err != nil {
		return false, fmt.Errorf("count running jobs: %w", err)
	}
	return running == 0, nil
}
