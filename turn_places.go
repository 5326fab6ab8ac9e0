package belay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// A person approves a call as it was shown, and its paths may lead elsewhere by the time it
// runs: a link was swapped, or a directory was replaced by a link. So the floor says where
// the paths lead (Authorization.Places). That is kept with the approval, as a part of its
// hash, and compared when the call is about to run.

// placesMark stands between the hash of the input and that of the places.
const placesMark = "+"

// approvalHash identifies what is approved: an input, and where its paths lead.
func approvalHash(input json.RawMessage, places string) string {
	hash := canonicalHash(input)
	if places != "" {
		hash += placesMark + strings.TrimPrefix(textHash(places), "sha256:")[:32]
	}
	return hash
}

// isAbout reports whether an approval is about an input, wherever its paths lead.
func (a *Approval) isAbout(input json.RawMessage) bool {
	hash, _, _ := strings.Cut(a.Hash, placesMark)
	return hash == canonicalHash(input)
}

// approved reports whether the call runs because someone approved it.
func (c *call) approved() bool {
	return c.approval != nil && c.approval.Decided != nil && c.approval.Decided.Allow
}

// moved reports whether a path of an approved call leads elsewhere than when it was shown,
// as far as the floor said when it was last asked.
func (c *call) moved() bool {
	return c.approved() && c.approval.Hash != approvalHash(c.Input, c.places)
}

// askAgain is what becomes of an approved call whose paths lead elsewhere, after the floor
// was asked about it again.
func (c *call) askAgain(floor Authorization) Authorization {
	if toolSeverity[floor.Decision] > toolSeverity[ToolAsk] {
		return floor
	}
	reason := "a path of this call leads elsewhere than when it was approved"
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

// mostAsked is how often a call is asked about again because its paths moved. After that it
// is denied: something changes them all the time.
const mostAsked = 3

// approveHere asks about calls, and asks again about those whose paths have moved meanwhile.
func (t *turn) approveHere(b *batch) error {
	for range mostAsked {
		if err := t.approve(b); err != nil || !t.reconsider(b) {
			return err
		}
		t.gather(b)
		if err := t.commit(nil, b.records(false), b.approvals()); err != nil { // a question is on record before it is asked
			return err
		}
	}
	for _, c := range b.calls {
		if c.result == nil && c.state == CallParked && c.approval != nil && c.approval.Decided == nil {
			t.decided(c, Decision{By: "belay", Reason: "the paths of the call lead elsewhere each time it is approved"})
		}
	}
	return nil
}

// reconsider asks the floor once more about calls that were approved and are about to run.
// It reports whether one has to be asked about again.
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
		}, func(c *call, value any) {
			c.refuse("belay", fmt.Sprintf("panic while checking the call again: %v", value))
		})
		again = again || c.state == CallParked
	}
	return again
}

// hasPlaces reports whether the call was approved with places that can be compared.
func (c *call) hasPlaces() bool {
	return c.approved() && c.tool != nil && (c.places != "" || strings.Contains(c.approval.Hash, placesMark))
}

// askFloorAgain asks the floor, and nobody else, about a call.
func (t *turn) askFloorAgain(c *call) Authorization {
	c.askers = nil
	return t.askFloor(c, Authorization{})
}

// stillThere gives a call that is about to start its result if a path of it has moved since
// it was approved: calls that ran before it may have done that. It reports whether the call
// may start.
func (t *turn) stillThere(c *call) bool {
	if !c.hasPlaces() || c.Resumes != "" {
		return true
	}
	floor := t.askFloorAgain(c)
	switch {
	case c.result != nil:
		return false
	case toolSeverity[floor.Decision] > toolSeverity[ToolAsk]:
		t.deny(c, floor.By, floor.Reason)
		return false
	case c.moved():
		t.deny(c, cmp.Or(floor.By, "floor"), "a path of this call leads elsewhere than when it was approved, so the approval does not cover it. Make the call again if it is still needed: it will be asked about again")
		return false
	default:
		return true
	}
}
