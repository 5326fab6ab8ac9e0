package memory

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/policy"
)

// The turn policy of memory. Both keys hold only if everyone who sets them says so: a
// hook, in Go or in a file, that sets one to false has the last word, in whatever order
// hooks run. If the classifier fails both are false; a turn without the keys has neither.
var (
	// PolicyRead lets memories into the turn: by recall, and by tools.
	PolicyRead = policy.And("memory.read")
	// PolicyWrite lets the turn be remembered: by extraction, and by tools.
	PolicyWrite = policy.And("memory.write")
)

// Access is what a turn may do with memories. Forgetting is part of both.
type Access struct{ Read, Write bool }

// policy is the access as settings of a turn.
func (a Access) policy() belay.TurnPolicy {
	return belay.SetPolicy(PolicyRead.Set(a.Read), PolicyWrite.Set(a.Write))
}

// accessOf is what the merged policy of a turn allows.
func accessOf(policy policy.Settings) Access {
	read, _ := PolicyRead.Value(policy)
	write, _ := PolicyWrite.Value(policy)
	return Access{read, write}
}

// classify sets the policy of a turn. If it fails, the policy is that of a turn that may
// do nothing: see Hooks.
func (e *Extension) classify(ctx context.Context, in belay.TurnBegun) (belay.TurnPolicy, error) {
	access := Classify(in.Text())
	if e.opts.Classify != nil {
		more, err := e.opts.Classify(ctx, in)
		if err != nil {
			return belay.TurnPolicy{}, &hook.SafeError{Message: "Options.Classify failed, so the turn reads and writes no memories", Err: err}
		}
		access.Read, access.Write = access.Read && more.Read, access.Write && more.Write
	}
	if _, err := e.viewOf(ctx, in.Session(), in.Agent()); err != nil {
		return belay.TurnPolicy{}, err
	}
	access.Write = access.Write && !e.opts.ReadOnly
	return access.policy(), nil
}
