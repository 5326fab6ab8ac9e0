// Package recorded reads the tool calls of recorded sessions: what the model asked for, what
// ran, and what came back. Audits, tests of hooks and backtests take their calls from here.
package recorded

import (
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// Call is a call in a transcript, with its result.
type Call struct {
	Session, Turn string
	Step          int
	Time          time.Time
	ID, Tool      string
	// Input is the input that the model sent. Final is the input that was checked and run:
	// it is Input if nobody has rewritten it. RewrittenBy lists who rewrote it, in order.
	Input, Final json.RawMessage
	RewrittenBy  []string
	// Result is nil if the call has no result yet.
	Result *belay.ResultPart
}

// Copied returns the number of the last message that a fork has copied, or 0 if the session is no
// fork. What was copied happened in another session: the approvals are there, too.
func Copied(from *belay.ForkPoint) int64 {
	if from == nil {
		return 0
	}
	return from.Seq
}

// Denied returns who denied the call, and why. ok is false if the call was not denied.
func (c *Call) Denied() (by, why string, ok bool) {
	if c.Result == nil || c.Result.Class != belay.ClassDenied {
		return "", "", false
	}
	by, why, _ = Denial(c.Result.Text)
	return by, why, true
}

// denial matches the result of a denied call, as turn.refuse in the root package writes it. A
// long reason may be cut.
var denial = lazyregexp.New(`(?s)^Denied by ("(?:[^"\\]|\\.)*"): (.*)`)

// Denial returns who denied a call, and why, from the text of its result. If the text does not say
// it, why is the text.
func Denial(text string) (by, why string, ok bool) {
	found := denial.FindStringSubmatch(text)
	if found == nil {
		return "", text, false
	}
	by, err := strconv.Unquote(found[1])
	if err != nil {
		return "", text, false
	}
	why, _, _ = strings.Cut(found[2], "\nDo not repeat this call.")
	return by, why, true
}

// unstarted are the results of calls that ended before they started, as the root package writes
// them. The class of such a result is aborted, like that of a call that was stopped.
var unstarted = map[string]bool{
	"The turn was aborted before this call started.":                           true,
	"The turn was ended before this call started.":                             true,
	"The model refused to answer this message.":                                true,
	"Another call of the same message ended the turn before this one started.": true,
}

// Ran reports whether a call has a result and has started. A call that was stopped, or whose
// process ended, may have done a part of its work.
func (c *Call) Ran() bool {
	if c.Result == nil {
		return false
	}
	switch c.Result.Class {
	case belay.ClassDenied, belay.ClassInvalid, belay.ClassNotFound, belay.ClassScope:
		return false
	case belay.ClassAborted:
		return !unstarted[c.Result.Text]
	default:
		return true
	}
}

// Calls yields the calls in the messages of a session, in their order.
func Calls(session string, messages iter.Seq2[*belay.Message, error]) iter.Seq2[Call, error] {
	return func(yield func(Call, error) bool) {
		var open calls
		for m, err := range messages {
			if err != nil {
				yield(Call{}, err)
				return
			}
			if m.Kind == belay.KindAssistant {
				if !open.yield(yield) {
					return
				}
				open = nil
			}
			open = open.with(session, m)
		}
		open.yield(yield)
	}
}

// placeholder matches a slash command in a stored user message.
var placeholder = lazyregexp.New(`\[invoked_extension__(?:hook|skill)_([A-Za-z][A-Za-z0-9_-]*)\]`)

// Commands returns the text of a stored user message with its slash commands as the user typed
// them.
func Commands(text string) string { return placeholder.ReplaceAllString(text, "/$1") }

// Typed returns what the user typed in a stored user message.
func Typed(m *belay.Message) string {
	if m.PreModifiedText != nil {
		return *m.PreModifiedText
	}
	return Commands(m.Text())
}

// IsReply reports whether a stored answer is not the model's: a hook, a directive or an extension
// answered in its place. byHook reports whether it was a hook.
func IsReply(m *belay.Message) (reply, byHook bool) {
	if m.Kind != belay.KindAssistant || m.Usage != nil { // only a response of a model has a usage
		return false, false
	}
	return true, m.Model == belay.UserPromptSubmit.Name()
}

// IsGranted reports whether nobody decided: an earlier approval covered the call.
func IsGranted(d *belay.Decision) bool {
	return d.Allow && strings.HasPrefix(d.Reason, "allowed before, with approval ")
}

// Seen returns the hash of what a session has seen last of a file, as the results of read, write
// and edit in its messages say. It returns "" if they do not say it.
func Seen(messages iter.Seq2[*belay.Message, error], path string) (hash string, err error) {
	for m, err := range messages {
		if err != nil {
			return "", err
		}
		for i := range m.Parts {
			r := m.Parts[i].Result
			if r == nil || r.Tool != "read" && r.Tool != "write" && r.Tool != "edit" {
				continue
			}
			var view struct {
				Path string `json:"path"`
				Seen string `json:"seen"`
			}
			if json.Unmarshal(r.Render, &view) == nil && view.Path == path && view.Seen != "" {
				hash = view.Seen
			}
		}
	}
	return hash, nil
}

// calls are the calls of the last response. Ids are unique only within a response.
type calls []*Call

// yield passes the calls on, and reports whether more are wanted.
func (all calls) yield(yield func(Call, error) bool) bool {
	for _, c := range all {
		if !yield(*c, nil) {
			return false
		}
	}
	return true
}

// with adds the calls and the results of a message.
func (all calls) with(session string, m *belay.Message) calls {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Call != nil {
			c := &Call{Session: session, Turn: m.Turn, Step: m.Step, Time: m.Time, ID: p.Call.ID, Tool: p.Call.Tool, Input: p.Call.Input, Final: p.Call.Final, RewrittenBy: p.Call.RewrittenBy}
			if len(c.Final) == 0 {
				c.Final = c.Input
			}
			all = append(all, c)
		}
		if p.Result != nil {
			for _, c := range all {
				if c.ID == p.Result.Call {
					c.Result = p.Result
				}
			}
		}
	}
	return all
}
