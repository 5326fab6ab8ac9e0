package belay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A person approves a call whose paths lead to certain files. Before the call runs,
// somebody may change a link or a directory, so that the paths lead to other files. So the
// floor says where the paths lead (Authorization.Places). The approval's hash contains
// hashes of these places. Belay compares them just before the call runs. A call that
// reaches fewer places than were approved may run.

const (
	// placesMark separates the hash of the input from the hashes of the places.
	placesMark = "+"
	// mostPlaces is how many places are hashed one by one. If there are more, the approval
	// has one hash for all of them, and no place may change.
	mostPlaces = 16
)

// approvalHash identifies what a person approves: an input, and the places that its paths
// lead to.
func approvalHash(input json.RawMessage, places string) string {
	hash := canonicalHash(input)
	if places != "" {
		hash += placesMark + strings.Join(placeHashes(places), ".")
	}
	return hash
}

// placeHashes returns a short hash of each place, sorted. If there are more than
// mostPlaces, it returns one hash of all places.
func placeHashes(places string) []string {
	short := func(text string) string { return strings.TrimPrefix(textHash(text), "sha256:")[:16] }
	all := strings.Fields(places)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > mostPlaces {
		return []string{short(strings.Join(all, " "))}
	}
	for i, place := range all {
		all[i] = short(place)
	}
	slices.Sort(all)
	return all
}

// isAbout reports whether an approval is about an input. It ignores the places.
func (a *Approval) isAbout(input json.RawMessage) bool {
	hash, _, _ := strings.Cut(a.Hash, placesMark)
	return hash == canonicalHash(input)
}

// approved reports whether somebody approved the call.
func (c *call) approved() bool {
	return c.approval != nil && c.approval.Decided != nil && c.approval.Decided.Allow
}

// moved reports whether an approved call reaches a place that the approval does not
// include. It uses the places of the last permission check.
func (c *call) moved() bool {
	if !c.approved() {
		return false
	}
	_, kept, _ := strings.Cut(c.approval.Hash, placesMark)
	approved := strings.Split(kept, ".")
	return slices.ContainsFunc(placeHashes(c.places), func(place string) bool { return !slices.Contains(approved, place) })
}

// askAgain returns a new question about an approved call whose paths now lead to other
// places. If the floor denies the call, it returns the denial.
func (c *call) askAgain(floor Authorization) Authorization {
	if toolSeverity[floor.Decision] > toolSeverity[ToolAsk] {
		return floor
	}
	reason := "a path of this call now leads to another file than when the call was approved"
	if floor.Reason != "" {
		reason += ": " + floor.Reason
	}
	by := cmp.Or(floor.By, c.approval.By, "floor")
	if len(c.askers) == 0 {
		c.askers = []asker{{by, reason, true}}
	} else {
		c.askers[0].reason = reason
	}
	return Authorization{Decision: ToolAsk, Reason: reason, By: by}
}

// mostAsked is how many times Belay asks a person about one call if its paths change after
// each approval. Then Belay denies the call.
const mostAsked = 3

// approveHere asks a person about the calls. It asks again if paths have changed meanwhile.
// After mostAsked attempts, it denies the calls whose paths have changed again.
func (t *turn) approveHere(b *batch) error {
	for range mostAsked {
		if err := t.approve(b); err != nil || !t.reconsider(b) {
			return err
		}
		t.applyHalt(b)
		t.gather(b)
		for _, c := range b.calls { // no call has started yet
			if c.state == CallStarted && c.result == nil && !c.begun && c.Resumes == "" {
				c.state = CallJudged
			}
		}
		if err := t.commitAsked(b, true); err != nil { // a question is stored before it is asked
			return err
		}
	}
	for _, c := range b.calls {
		if c.result == nil && c.state == CallParked && c.approval != nil && c.approval.Decided == nil {
			t.decidedUnasked(c, Decision{By: "belay", Reason: "the paths of this call changed after each approval"})
		}
	}
	return nil
}

// reconsider checks approved calls again just before they run. It reports whether a person
// must be asked again.
func (t *turn) reconsider(b *batch) bool {
	again := false
	for _, c := range b.calls {
		if !c.mayRun() || !c.hasPlaces() || c.begun || t.ctx.Err() != nil {
			continue
		}
		t.callGuarded(c, func(t *turn, c *call) {
			floor := t.askFloorAgain(c)
			if c.result == nil && c.moved() {
				t.decide(c, c.askAgain(floor))
			}
		}, func(t *turn, c *call, value any) {
			t.deny(c, "belay", fmt.Sprintf("panic while checking the call again: %v", value))
		})
		again = again || c.state == CallParked
	}
	return again
}

// hasPlaces reports whether the call was approved and the approval includes places.
func (c *call) hasPlaces() bool {
	return c.approved() && c.tool != nil && strings.Contains(c.approval.Hash, placesMark)
}

// askFloorAgain asks the floor about a call again, but not the hooks.
func (t *turn) askFloorAgain(c *call) Authorization {
	c.askers = nil
	return t.askFloor(c, Authorization{})
}

// stillThere reports whether a call may start. If a path has changed since the approval,
// for example because of an earlier call, the call gets a result that says so.
func (t *turn) stillThere(c *call) bool {
	if !c.hasPlaces() || c.Resumes != "" {
		return true
	}
	floor := t.askFloorAgain(c)
	switch {
	case c.result != nil:
		return false
	case toolSeverity[floor.Decision] > toolSeverity[ToolAsk]:
		c.halted = floor.Decision == ToolHalt
		t.deny(c, floor.By, floor.Reason)
		return false
	case c.moved():
		t.deny(c, cmp.Or(floor.By, "floor"), "a path of this call now leads to a file that the approval does not cover")
		return false
	default:
		return true
	}
}
