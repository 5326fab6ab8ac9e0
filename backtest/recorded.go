package backtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/recorded"
)

// wasOf returns what happened to a call. If the call never reached the hooks, or if it is
// not known how they answered, it returns the reason why the call cannot be replayed. inquired
// says that the tool itself has asked a person, who refused: that is no part of the policy.
func wasOf(call *belay.CallPart, result *belay.ResultPart, approval *belay.Approval, inquired bool) (was Outcome, unreplayed string) {
	was.Outcome = Allowed
	if len(call.RewrittenBy) > 0 {
		was.Input, was.RewrittenBy = call.Final, call.RewrittenBy
	}
	if approval != nil {
		was.Outcome, was.By, was.Reason = Asked, approval.By, approval.Reason
		if d := approval.Decided; d != nil {
			was.granted = recorded.IsGranted(d)
			if d.Allow {
				was.Approved = d.By
			} else {
				was.Refused = d.By
			}
		}
		return was, ""
	}
	switch {
	case call.Malformed != "":
		return was, string(belay.ClassInvalid)
	case result == nil:
		return was, "unfinished"
	}
	switch result.Class {
	case belay.ClassInvalid, belay.ClassNotFound, belay.ClassScope, belay.ClassAborted:
		return was, string(result.Class)
	case belay.ClassDenied:
		if inquired {
			break
		}
		if by, reason, ok := recorded.Denial(result.Text); ok {
			was.Outcome, was.By, was.Reason = Denied, by, reason
		} // otherwise the tool ran, and refused by itself
	default:
	}
	return was, ""
}

// ran reports whether a call was started.
func ran(was *Outcome) bool {
	return was.Outcome == Allowed || was.Outcome == Asked && was.Approved != ""
}

// callDiffers reports whether the outcomes of a call differ. The note explains what the
// outcomes do not say.
func callDiffers(call *belay.CallPart, was, now *Outcome, a *asker, defaults map[string]bool) (note string, differs bool) {
	switch {
	case was.Outcome == Asked && isOwnQuestion(call.Tool, was.By) && !a.known[hookKey{belay.ToolPre.Name(), was.By}] && now.Outcome == Allowed:
		return "", false
	case was.refused() && now.refused():
		return "", was.Outcome != now.Outcome && was.By != now.By
	case was.Outcome != now.Outcome:
		if was.Outcome != Allowed && was.By != "" && !a.known[hookKey{belay.ToolPre.Name(), was.By}] && a.floor == nil {
			note = was.By + " is not part of the policy"
		}
		return note, true
	case was.Outcome == Asked && now.Refused != "" && was.Refused == "",
		was.Outcome == Asked && now.Approved != "" && was.Refused != "":
		return "", true
	case was.Outcome == Asked && !was.granted && now.Approved != "" && now.Approved != was.Approved:
		return now.Approved + " answers in place of a person or of another hook", true
	case was.Outcome == Asked && !was.granted && now.Approved == "" && now.Refused == "" && a.isApprover(cmp.Or(was.Approved, was.Refused)):
		return cmp.Or(was.Approved, was.Refused) + " does not answer the question now: a person must", true
	case was.Outcome == Asked && was.granted && now.By != was.By && now.Approved == "":
		return "an earlier approval answered the question of " + was.By + ". It does not answer that of " + now.By, true
	case was.refused():
		return "", false
	}
	return "", !sameInput(call, was, now, defaults)
}

// isOwnQuestion reports whether the hook that asked belongs to the tool itself: the hooks of
// ask_user and of present_plan, which have the names of their tools. They are no part of the
// policy. Any other hook may also have the name of a tool.
func isOwnQuestion(tool, by string) bool {
	return by == tool && (tool == "ask_user" || tool == "present_plan")
}

// isApprover reports whether a decision was the one of a hook, and not of a person. A record does
// not say it, so the name must show it: the policy has such a hook, or the name is that of a
// hook in a file, such as project/auto. A person is "ann" or "ann (belay)".
func (a *asker) isApprover(name string) bool {
	return a.known[hookKey{belay.ApprovalRequest.Name(), name}] || strings.Contains(name, "/") && !strings.Contains(name, " ")
}

// isUnknown reports whether an outcome cannot be known, because a hook is not asked that had a
// part in what happened, and nothing else leads to another outcome now.
func (a *asker) isUnknown(was, now *Outcome) bool {
	pre, request := belay.ToolPre.Name(), belay.ApprovalRequest.Name()
	switch {
	case was.Outcome != Allowed && a.isSilent(pre, was.By):
		return now.Outcome == Allowed
	case was.Outcome == Asked && now.Outcome == Asked && now.Approved == "" && now.Refused == "" && (a.isSilent(request, was.Approved) || a.isSilent(request, was.Refused)):
		return true
	case slices.ContainsFunc(was.RewrittenBy, func(id string) bool { return a.isSilent(pre, id) }):
		return now.Outcome == was.Outcome
	default:
		return false
	}
}

// sameInput reports whether a call has the same final input in both outcomes. The recorded
// input of a rewritten call may also have defaults of its tool, which do not count. defaults are
// the names of those that other calls of the tool have got, or nil if there were no such calls.
func sameInput(call *belay.CallPart, was, now *Outcome, defaults map[string]bool) bool {
	before, after := was.Input, now.Input
	if before == nil && after == nil {
		return true
	}
	if before == nil {
		before = call.Input
		if call.Final != nil {
			before = call.Final
		}
	}
	if after == nil {
		after = call.Input
	}
	var x, y any
	if json.Unmarshal(before, &x) != nil || json.Unmarshal(after, &y) != nil {
		return string(before) == string(after)
	}
	if reflect.DeepEqual(x, y) {
		return true
	}
	old, isObject := x.(map[string]any)
	late, both := y.(map[string]any)
	var sent map[string]any
	if !isObject || !both || json.Unmarshal(call.Input, &sent) != nil {
		return false
	}
	for k := range old {
		_, isSent := sent[k]
		if _, isLate := late[k]; isLate || isSent {
			continue
		}
		if defaults[k] || defaults == nil && now.Input != nil { // what nothing rewrites now, a hook has added
			delete(old, k)
		}
	}
	return reflect.DeepEqual(x, y)
}

// learnDefaults keeps the names of the fields that Belay added to a call which nobody rewrote.
func (s *session) learnDefaults(call *belay.CallPart) {
	if len(call.RewrittenBy) > 0 {
		return
	}
	if s.defaults == nil {
		s.defaults = make(map[string]map[string]bool)
	}
	known := s.defaults[call.Tool]
	if known == nil {
		known = make(map[string]bool)
		s.defaults[call.Tool] = known
	}
	if call.Final == nil {
		return
	}
	var sent, final map[string]json.RawMessage
	if json.Unmarshal(call.Input, &sent) != nil || json.Unmarshal(call.Final, &final) != nil {
		return
	}
	for k := range final {
		if _, isSent := sent[k]; !isSent {
			known[k] = true
		}
	}
}

// asFailure reports whether a dispatch failed because a hook of a collect phase failed
// closed.
func asFailure(err error, failed **hook.FailureError) bool { return errors.As(err, failed) }
