package mcptool

import (
	"testing"
	"testing/synctest"
	"time"
)

// Some servers announce tools and never list them. A model request waits once for all
// such servers together, not once for each.
//
// SPEC E-09
func TestOneDeadlineForAllServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &Extension{over: t.Context()}
		e.now.Store(&toolbox{})
		for range 3 {
			l := newLink("s", 0, nil, &Options{})
			l.current.Store(&life{})
			l.announced.Store(1)
			e.mounts = append(e.mounts, &mount{link: l})
		}
		start := time.Now()
		e.StepTools("main")
		if took := time.Since(start); took != catchingUp {
			t.Errorf("it waited %v, want %v", took, catchingUp)
		}
	})
}
