package cli

import (
	"bytes"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
)

// After a decision, Belay prints how the turn continues. A worker continues it only if a
// worker is running and the turn is queued.
func TestDecidingSaysWhoGoesOn(t *testing.T) {
	t.Parallel()
	const (
		resume = "resume:  belay resume s\n"
		asker  = "the process that asked for approval continues the turn; to follow it: belay watch s\n"
		serves = "a worker continues the turn; to follow it: belay watch s\n"
		either = "if the turn came from belay submit, a worker continues it; to follow it: belay watch s\notherwise, resume:  belay resume s\n"
	)
	due := func(session string) []belay.DueTurn {
		return []belay.DueTurn{{Session: session, Agent: assembly.MainAgent}}
	}
	worker := belay.HolderLoad{PID: 1, Worker: true}
	load := func(waiting, parked int, holders ...belay.HolderLoad) belay.Load {
		return belay.Load{Waiting: waiting, Parked: parked, Holders: holders}
	}
	at := func(session string) belay.HolderLoad {
		return belay.HolderLoad{PID: 1, Worker: true, Turns: due(session)}
	}
	gone := at("s")
	gone.Gone = true
	putOff := load(0, 1, worker)
	putOff.PutOff = due("s")
	for _, test := range []struct {
		rule          string
		before, after belay.Load
		want          string
		held          bool
	}{
		{"nobody works", load(0, 1), load(1, 0), resume, false},
		{"who has the store open is no worker", load(0, 1, belay.HolderLoad{PID: 1}), load(1, 0, belay.HolderLoad{PID: 1}), resume, false},
		{"a worker that is gone takes nothing", load(0, 1, worker), load(1, 0, gone), resume, false},
		{"the turn was parked on the list, and waits now", load(0, 1, worker), load(1, 0, worker), serves, false},
		{"a worker has it already", load(0, 0, worker), load(0, 0, at("s")), serves, false},
		{"a worker was at it still", load(0, 0, at("s")), load(0, 0, worker), serves, false},
		{"one was at it that is gone, and another takes it up", load(0, 0, worker, gone), load(0, 0, worker, gone), serves, false},
		{"it had been put off", putOff, load(1, 1, worker), serves, false},
		{"the worker is at others", load(0, 2, at("other")), load(0, 2, at("other")), resume, false},
		{"it is not on the list", load(0, 0, worker), load(0, 0, worker), resume, false},
		{"another was parked meanwhile, and some wait: it may be one of them", load(1, 1, worker), load(2, 1, worker), either, false},
		{"a process that is no worker holds the session, and asks", load(0, 0), load(0, 0), asker, true},
		{"it does so where workers live", load(0, 0, worker), load(0, 0, worker), asker, true},
		{"it is a worker that holds it", load(0, 0, at("s")), load(0, 0, at("s")), serves, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var told bytes.Buffer
			a := &app{err: &told}
			a.tellGoOn("s", test.held, &test.before, &test.after)
			if told.String() != test.want {
				t.Errorf("told %q, want %q", &told, test.want)
			}
		})
	}
}
