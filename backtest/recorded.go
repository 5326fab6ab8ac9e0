package backtest

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// denial matches the result of a call that was denied. Only Belay writes it.
var denial = regexp.MustCompile(`(?s)^Denied by ("(?:[^"\\]|\\.)*"): (.*)\nDo not repeat this call\.`)

// grantedBefore is how the reason of a decision begins if an earlier approval covered the
// call.
const grantedBefore = "allowed before, with approval "

// wasOf returns what happened to a call. If the call never reached the hooks, or if it is
// not known how they answered, it returns the reason why the call cannot be replayed.
func wasOf(call *belay.CallPart, result *belay.ResultPart, approval *belay.Approval) (was Outcome, unreplayed string) {
	was.Outcome = Allowed
	if len(call.RewrittenBy) > 0 {
		was.Input, was.RewrittenBy = call.Final, call.RewrittenBy
	}
	if approval != nil {
		was.Outcome, was.By, was.Reason = Asked, approval.By, approval.Reason
		if d := approval.Decided; d != nil {
			was.granted = strings.HasPrefix(d.Reason, grantedBefore)
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
		if found := denial.FindStringSubmatch(result.Text); found != nil {
			if by, err := strconv.Unquote(found[1]); err == nil {
				was.Outcome, was.By, was.Reason = Denied, by, found[2]
			}
		}
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
func callDiffers(call *belay.CallPart, was, now *Outcome, a *asker) (note string, differs bool) {
	switch {
	case was.Outcome == Asked && was.Refused == "" && was.By == call.Tool && now.Outcome == Allowed:
		return "", false // the tool asked by itself, as ask_user does. It is no part of the policy
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
	case was.Outcome == Asked && was.granted && now.By != was.By && now.Approved == "":
		return "an earlier approval answered the question of " + was.By + ". It does not answer that of " + now.By, true
	case was.refused():
		return "", false
	}
	return "", !sameInput(call, was, now)
}

// sameInput reports whether a call has the same final input in both outcomes. The recorded
// input of a rewritten call may also have defaults of its tool, which do not count.
func sameInput(call *belay.CallPart, was, now *Outcome) bool {
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
		if _, now := late[k]; !now && !isSent {
			delete(old, k) // a default
		}
	}
	return reflect.DeepEqual(x, y)
}

// asFailure reports whether a dispatch failed because a hook of a collect phase failed
// closed.
func asFailure(err error, failed **hook.FailureError) bool { return errors.As(err, failed) }
