package belaytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// WellFormed returns nil if a transcript, or the messages of a request, follow these
// rules. Otherwise the error says what is wrong:
//
//   - stored messages are numbered without a gap
//   - the kind of each message fits its role, and its parts fit its kind
//   - the calls of a response have unique ids, and their inputs are JSON objects
//   - the message after a response has one result for each call, in the order of the calls, and
//     no other results
//
// While a turn is parked, its session is not well-formed.
func WellFormed(messages []*belay.Message) error {
	var problems []error
	var open []*belay.CallPart                            // the calls of the last response
	numbered := len(messages) > 0 && messages[0].Seq == 1 // false if the messages begin with a summary
	stored := int64(0)                                    // the number of the last stored message
	for i, m := range messages {
		report := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("message %d (%s): %s", i+1, m.Kind, fmt.Sprintf(format, args...)))
		}
		if numbered && m.Seq != 0 {
			if stored++; m.Seq != stored {
				report("it is numbered %d, not %d", m.Seq, stored)
			}
		}
		for _, problem := range shape(m) {
			report("%s", problem)
		}
		switch {
		case m.Kind == belay.KindResults:
			if problem := answers(open, m); problem != "" {
				report("%s", problem)
			}
			open = nil
		case m.IsCompaction: // a summary can be made before the calls have results
		default:
			if len(open) > 0 {
				report("want the results of %s here", names(open))
			}
			open = m.Calls()
		}
	}
	if len(open) > 0 {
		problems = append(problems, fmt.Errorf("the calls %s have no results", names(open)))
	}
	return errors.Join(problems...)
}

// answered removes the last response of a parked turn, and all messages after it.
func answered(messages []*belay.Message) []*belay.Message {
	for i, m := range slices.Backward(messages) {
		if m.Kind == belay.KindResults {
			break
		}
		if len(m.Calls()) > 0 {
			return messages[:i]
		}
	}
	return messages
}

// partsOf lists the types of parts that each kind of message can have.
var partsOf = map[belay.MessageKind][]belay.PartType{
	belay.KindUser:       {belay.PartText, belay.PartMedia},
	belay.KindAssistant:  {belay.PartText, belay.PartThinking, belay.PartMedia, belay.PartCall},
	belay.KindResults:    {belay.PartResult},
	belay.KindReminder:   {belay.PartText},
	belay.KindContext:    {belay.PartText},
	belay.KindInjected:   {belay.PartText, belay.PartMedia},
	belay.KindCompaction: {belay.PartText},
}

// shape returns what is wrong with a single message.
func shape(m *belay.Message) []string {
	var problems []string
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	allowed, known := partsOf[m.Kind]
	if !known {
		report("there is no such kind")
	}
	if (m.Role == belay.RoleAssistant) != (m.Kind == belay.KindAssistant) {
		report("its role is %s", m.Role)
	}
	if len(m.Parts) == 0 {
		report("it is empty")
	}
	seen := make(map[string]bool)
	for i := range m.Parts {
		p := &m.Parts[i]
		if known && !slices.Contains(allowed, p.Type) {
			report("it has a part of type %s", p.Type)
		}
		if (m.Kind == belay.KindReminder) != p.IsReminder {
			report("part %d is marked as a reminder: %t", i+1, p.IsReminder)
		}
		if c := p.Call; c != nil {
			if c.ID == "" || seen[c.ID] {
				report("the id %q of a call is empty or occurs twice", c.ID)
			}
			seen[c.ID] = true
			var object map[string]json.RawMessage
			if json.Unmarshal(c.Input, &object) != nil || object == nil {
				report("the input of call %s is not a JSON object", c.ID)
			}
		}
	}
	return problems
}

// answers returns how the results in a message differ from the calls. It returns "" if they
// match.
func answers(calls []*belay.CallPart, m *belay.Message) string {
	var got []string
	for i := range m.Parts {
		if r := m.Parts[i].Result; r != nil {
			got = append(got, r.Call+" of "+r.Tool)
		}
	}
	want := make([]string, len(calls))
	for i, c := range calls {
		want[i] = c.ID + " of " + c.Tool
	}
	if slices.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("the message has the results of %s, but the calls are %s", list(got), list(want))
}

func names(calls []*belay.CallPart) string {
	all := make([]string, len(calls))
	for i, c := range calls {
		all[i] = c.ID
	}
	return strings.Join(all, ", ")
}
