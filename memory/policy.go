package memory

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/policy"
)

// These keys are the turn policy of memory. Several hooks can set a key. The key is true
// only if all of them set true, in any order. If the classifier fails, both keys are false.
// If a turn does not have the keys, the turn has no access.
var (
	// PolicyRead allows a turn to read memories, by recall and by tools.
	PolicyRead = policy.And("memory.read")
	// PolicyWrite allows a turn to store memories, by extraction and by tools.
	PolicyWrite = policy.And("memory.write")
)

// Access is what a turn may do with memories. A turn that may read or write may also
// forget.
type Access struct{ Read, Write bool }

// policy returns the access as policy settings of a turn.
func (a Access) policy() belay.TurnPolicy {
	return belay.SetPolicy(PolicyRead.Set(a.Read), PolicyWrite.Set(a.Write))
}

// accessOf returns what the merged policy of a turn allows.
func accessOf(policy policy.Settings) Access {
	read, _ := PolicyRead.Value(policy)
	write, _ := PolicyWrite.Value(policy)
	return Access{read, write}
}

// classify sets the policy of a turn. If it fails, the turn has no access, see Hooks.
func (e *Extension) classify(ctx context.Context, in belay.TurnBegun) (belay.TurnPolicy, error) {
	access := Classify(in.Text())
	if e.opts.Classify != nil {
		more, err := e.opts.Classify(ctx, in)
		if err != nil {
			return belay.TurnPolicy{}, &hook.SafeError{Message: "the function Options.Classify failed, so the turn reads and writes no memories", Err: err}
		}
		access.Read, access.Write = access.Read && more.Read, access.Write && more.Write
	}
	if _, err := e.viewOf(ctx, in.Session(), in.Agent()); err != nil {
		return belay.TurnPolicy{}, err
	}
	access.Write = access.Write && !e.opts.ReadOnly
	return access.policy(), nil
}
