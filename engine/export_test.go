package engine

import (
	"context"

	"github.com/belay-run/belay"
)

// LookForAborts makes a worker read the requests to abort its turns now.
func LookForAborts(ctx context.Context, w *Worker) {
	if store, ok := w.store.(belay.RequeueStore); ok {
		w.passAbortsOnce(ctx, store)
	}
}
