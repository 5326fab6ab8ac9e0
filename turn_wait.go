package belay

import (
	"sync"
	"time"
)

// wait is what a turn needs to wait for a tool: a channel and a timer. Waits are used again,
// because making them was 4 of the 60 allocations of a turn with one call.
type wait struct {
	done  chan struct{} // gets one value when the tool has returned
	timer *time.Timer
}

var waits = sync.Pool{New: func() any {
	w := &wait{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}}

// newWait returns a wait whose timer fires after a time.
func newWait(d time.Duration) *wait {
	w := waits.Get().(*wait)
	w.timer.Reset(d)
	return w
}

// free gives the wait back. It must not be called if the tool has not returned, because the
// tool's goroutine would then wake the next user of the wait.
func (w *wait) free() {
	w.timer.Stop()
	waits.Put(w)
}
