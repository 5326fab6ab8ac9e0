package inspect

import (
	"context"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// WorkloadOf reads the workload of a store.
func WorkloadOf(ctx context.Context, store interface {
	belay.TurnStore
	belay.JournalStore
},
) (l api.Workload, err error) {
	if l.Turns, err = store.Load(ctx); err != nil {
		return l, err
	}
	queue, ok := store.Queue().(hook.StatQueue)
	if !ok {
		return l, errors.New("the store's jobs cannot be counted")
	}
	l.Jobs, err = queue.Stats(ctx)
	return l, err
}
