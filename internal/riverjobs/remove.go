package riverjobs

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/riverdriver"
)

// Remove removes all jobs of a session, including ended ones, in a transaction of the
// caller. It returns false if one of the jobs is running, and then the caller must roll
// back. Otherwise the caller must free the keys.
func (q *Queue[TTx]) Remove(ctx context.Context, tx TTx, session string) (bool, error) {
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
