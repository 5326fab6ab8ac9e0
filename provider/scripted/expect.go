package scripted

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Expect defines what a request must contain. Empty fields match anything.
type Expect struct {
	// System must be a part of the system prompt.
	System string `yaml:"system"`
	// User must be a part of the user's newest message.
	User string `yaml:"user"`
	// Reminders are texts. Each must be a part of some reminder.
	Reminders []string `yaml:"reminders"`
	// Results are the expected results of all calls in the model's last message, in order.
	Results []Result `yaml:"results"`
	// Tools must be among the tools of the request. NoTools must not be among them.
	Tools   []string `yaml:"tools"`
	NoTools []string `yaml:"no_tools"`
}

// Result is the expected result of a call.
type Result struct {
	// Call and Tool are the id of the call and the name of its tool. Empty means any.
	Call string `yaml:"call"`
	Tool string `yaml:"tool"`
	// Text must be a part of the result.
	Text string `yaml:"text"`
	// IsError must equal IsError of the result. If it is false, the call must not have
	// failed.
	IsError bool `yaml:"is_error"`
}

// check returns an error that says how a request differs, or nil.
func (e *Expect) check(req *belay.Request) error {
	var diff []string
	differ := func(format string, args ...any) { diff = append(diff, fmt.Sprintf(format, args...)) }
	if !strings.Contains(req.System, e.System) {
		differ("the system prompt does not contain %q: it is %s", e.System, excerpt(req.System))
	}
	if user := newestUser(req); !strings.Contains(user, e.User) {
		differ("the user's newest message does not contain %q: it is %s", e.User, excerpt(user))
	}
	for _, want := range e.Reminders {
		if !reminds(req, want) {
			differ("no reminder contains %q", want)
		}
	}
	if e.Results != nil {
		diff = append(diff, checkResults(e.Results, newestResults(req))...)
	}
	for _, name := range e.Tools {
		if !advertised(req, name) {
			differ("the request does not have the tool %q: its tools are %s", name, toolNames(req))
		}
	}
	for _, name := range e.NoTools {
		if advertised(req, name) {
			differ("the request must not have the tool %q", name)
		}
	}
	if diff == nil {
		return nil
	}
	return fmt.Errorf("the request is not as expected: %s", strings.Join(diff, "; "))
}

func checkResults(want []Result, got []*belay.ResultPart) []string {
	var diff []string
	differ := func(format string, args ...any) { diff = append(diff, fmt.Sprintf(format, args...)) }
	if len(want) != len(got) {
		differ("the number of results is %d, and the step expects %d", len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		w, g, n := want[i], got[i], i+1
		if w.Call != "" && w.Call != g.Call {
			differ("result %d belongs to call %q, not to %q", n, g.Call, w.Call)
		}
		if w.Tool != "" && w.Tool != g.Tool {
			differ("result %d belongs to tool %q, not to %q", n, g.Tool, w.Tool)
		}
		if !strings.Contains(g.Text, w.Text) {
			differ("result %d does not contain %q: it is %s", n, w.Text, excerpt(g.Text))
		}
		switch {
		case w.IsError && !g.IsError:
			differ("result %d must be an error, but it is %s", n, excerpt(g.Text))
		case g.IsError && !w.IsError:
			differ("result %d must not be an error: %s", n, excerpt(g.Text))
		}
	}
	return diff
}

// newestUser returns the text of the user's last message.
func newestUser(req *belay.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		if m.Kind == belay.KindUser {
			return m.Text()
		}
	}
	return ""
}

// newestResults returns the results after the model's last message.
func newestResults(req *belay.Request) []*belay.ResultPart {
	start := 0
	for i, m := range slices.Backward(req.Messages) {
		if m.Role == belay.RoleAssistant {
			start = i + 1
			break
		}
	}
	var results []*belay.ResultPart
	for _, m := range req.Messages[start:] {
		for i := range m.Parts {
			if r := m.Parts[i].Result; r != nil {
				results = append(results, r)
			}
		}
	}
	return results
}

func reminds(req *belay.Request, text string) bool {
	for _, m := range req.Messages {
		for i := range m.Parts {
			if p := &m.Parts[i]; p.IsReminder && strings.Contains(p.Text, text) {
				return true
			}
		}
	}
	return false
}

func advertised(req *belay.Request, name string) bool {
	return slices.ContainsFunc(req.Tools, func(d belay.ToolDeclaration) bool { return d.Name == name })
}

func toolNames(req *belay.Request) string {
	if len(req.Tools) == 0 {
		return "none"
	}
	names := make([]string, len(req.Tools))
	for i := range req.Tools {
		names[i] = req.Tools[i].Name
	}
	return strings.Join(names, ", ")
}

// excerpt quotes the beginning of a text.
func excerpt(text string) string {
	const most = 80
	n := 0
	for i := range text {
		if n++; n > most {
			return fmt.Sprintf("%q...", text[:i])
		}
	}
	return fmt.Sprintf("%q", text)
}
