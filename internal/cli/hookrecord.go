package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/recorded"
	"github.com/belay-run/belay/internal/redact"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/internal/wholefile"
	"github.com/belay-run/belay/serve/api"
)

// recorders make tests from the messages of a session, for each phase whose input a transcript
// has.
var recorders = map[string]func(past *past, h *recordedHook, add func(recordedTest), leave func(leftOut)){
	belay.ToolPre.Name():          recordCalls,
	belay.ToolPost.Name():         recordResults,
	belay.UserPromptSubmit.Name(): recordPrompts,
	belay.TurnStop.Name():         recordStops,
}

// leftOut says why a case does not become a test.
type leftOut string

const (
	leftUnknown   leftOut = "it is not known what this hook would have answered"
	leftFailed    leftOut = "the hook failed"
	leftTool      leftOut = "the hook does not match the tool"
	leftRewritten leftOut = "it is not known which input this hook saw, because the input was rewritten"
	leftSecret    leftOut = "a secret was removed from it, and the answer may depend on that secret"
)

// recordedHook is the hook whose tests are made.
type recordedHook struct {
	id    string
	tools [][]string // sets of patterns of tools, each of which must match
}

func newRecordedHook(sub hook.Subscription) *recordedHook {
	h, m := &recordedHook{id: sub.ID()}, sub.Options().Match
	for _, patterns := range [][]string{m.Tools, m.Labels["tool"]} {
		if patterns != nil {
			h.tools = append(h.tools, patterns)
		}
	}
	return h
}

// covers reports whether the hook matches calls of a tool.
func (h *recordedHook) covers(tool string) bool {
	for _, patterns := range h.tools {
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), tool)
			return ok || err != nil // the loader reports an invalid pattern
		}) {
			return false
		}
	}
	return true
}

// past is what a session has: its messages, the records of the hooks of a phase, and its approvals
// by turn and call. The questions of tools are left out.
type past struct {
	messages  []*belay.Message
	runs      []hook.Run
	approvals map[[2]string]belay.Approval
}

// pastOf reads what a session has, without what a fork has copied.
func pastOf(ctx context.Context, r records, session *api.Session, phase string) (*past, error) {
	p := &past{approvals: make(map[[2]string]belay.Approval)}
	for m, err := range r.Read(ctx, session.ID, recorded.Copied(session.ForkedFrom)) {
		if err != nil {
			return nil, err
		}
		p.messages = append(p.messages, m)
	}
	for a, err := range r.Approvals(ctx, belay.ApprovalFilter{Session: session.ID}) {
		if err != nil {
			return nil, err
		}
		if k := [2]string{a.Turn, a.Call}; a.By != belay.AskedByTool && p.approvals[k].ID == "" {
			p.approvals[k] = a // later ones are about changed paths
		}
	}
	var err error
	p.runs, _, err = r.Runs(ctx, &runsOptions{all: true, filter: hook.Filter{Session: session.ID, Phase: phase}})
	return p, err
}

// unanswered returns why the messages do not show what a hook answered in a step, or in a turn if
// step is 0: it failed, or it objected in shadow mode, which changes nothing. It returns "" if they
// show it. A record does not say for which call of the step it is.
func (p *past) unanswered(id, turn string, step int) leftOut {
	for _, r := range p.runs {
		switch {
		case r.Subscription != id || r.Scope.Turn != turn || step != 0 && r.Scope.Step != step || r.State == hook.Skipped:
		case r.State == hook.Failed || r.State == hook.TimedOut || r.State == hook.Interrupted || r.Class != "":
			return leftFailed
		case r.Shadow && r.Severity > hook.SeverityPass:
			return leftUnknown
		}
	}
	return ""
}

// seen returns the input of a call as a hook of tool.pre saw it. ok is false if this is not known.
func (p *past) seen(id string, c *recorded.Call) (input json.RawMessage, ok bool) {
	if len(c.RewrittenBy) == 0 {
		return c.Final, true // only defaults were added
	}
	if slices.Contains(c.RewrittenBy, id) {
		return c.Input, c.RewrittenBy[0] == id
	}
	before, after := false, false
	for _, other := range c.RewrittenBy {
		switch p.order(other, id, c) {
		case -1:
			before = true
		case 1:
			after = true
		default:
			return nil, false
		}
	}
	if after {
		return c.Input, !before
	}
	return c.Final, true
}

// order returns -1 if, in the step of a call, a ran before b, 1 if it ran after b, and 0 if this is
// not known. What rewrites a call and has no record is an interceptor: these run before all hooks.
func (p *past) order(a, b string, c *recorded.Call) (order int) {
	of := func(id string) (all []hook.Run) {
		for _, r := range p.runs {
			if r.Subscription == id && r.Scope.Turn == c.Turn && r.Scope.Step == c.Step {
				all = append(all, r)
			}
		}
		return all
	}
	first, second := of(a), of(b)
	if len(first) == 0 && len(second) > 0 {
		return -1
	}
	for _, x := range first {
		for _, y := range second {
			if x.Dispatch != y.Dispatch {
				continue
			}
			now := 0
			if !x.Ended.IsZero() && !x.Ended.After(y.Started) {
				now--
			}
			if !y.Ended.IsZero() && !y.Ended.After(x.Started) {
				now++ // both if the clock did not move: the order is not known
			}
			if now == 0 || order != 0 && order != now {
				return 0
			}
			order = now
		}
	}
	return order
}

// recordedTest is a test of a hook, made from a session.
type recordedTest struct {
	name   string
	tool   string         // for tool.pre
	input  map[string]any // the arguments of the tool, or the input of the phase
	expect string         // "" means pass
	reason string         // the reason that expect names; "" if none
}

// recording collects tests for one hook.
type recording struct {
	text  bytes.Buffer
	tests map[string]bool
	names map[string]int
	left  map[leftOut]int
}

// add adds a test, unless the same test is there already.
func (r *recording) add(t recordedTest) {
	input, changed := withoutSecrets(t.input)
	expect := cmp.Or(t.expect, "pass")
	if t.reason != "" {
		reason := redact.Text(t.reason)
		changed = changed || reason != t.reason
		expect = fmt.Sprintf("{decision: %s, reason: %s}", expect, quotedJSON(reason))
	}
	if changed && expect != "pass" {
		r.left[leftSecret]++
		return
	}
	test := fmt.Sprintf("    input: %s\n    expect: %s\n", input, expect)
	if t.tool != "" {
		test = fmt.Sprintf("    tool: %s\n    args: %s\n    expect: %s\n", quotedJSON(t.tool), input, expect)
	}
	if r.tests[test] {
		return
	}
	r.tests[test] = true
	name := redact.Text(t.name)
	if r.names[name]++; r.names[name] > 1 {
		name += fmt.Sprintf(" (%d)", r.names[name])
	}
	fmt.Fprintf(&r.text, "  - name: %s\n", quotedJSON(name))
	if changed {
		r.text.WriteString("    # secrets were removed from this input\n")
	}
	r.text.WriteString(test)
}

func (r *recording) leave(why leftOut) { r.left[why]++ }

// recordTests prints tests for a hook, made from what sessions have for its phase. With file, it
// writes them to this new file instead.
func (a *app) recordTests(ctx context.Context, h *testedHook, sessions []string, file string) error {
	phase := h.sub.Phase().Name()
	record := recorders[phase]
	if record == nil {
		return usage("hook %s is at %s: --record makes tests for hooks at %s", h.sub.ID(), phase, strings.Join(slices.Sorted(maps.Keys(recorders)), ", "))
	}
	return a.records(ctx, func(r records) error {
		made := &recording{tests: make(map[string]bool), names: make(map[string]int), left: make(map[leftOut]int)}
		from, ids := newRecordedHook(h.sub), []string(nil)
		for _, session := range sessions {
			found, err := findRecord(ctx, r, session)
			if err != nil {
				return err
			}
			has, err := pastOf(ctx, r, &found, phase)
			if err != nil {
				return err
			}
			ids = append(ids, visible.OneLine(found.ID))
			record(has, from, made.add, made.leave)
		}
		for _, why := range slices.Sorted(maps.Keys(made.left)) {
			a.remarkf("%s left out: %s", visible.Counted(made.left[why], "case"), why)
		}
		word := "session"
		if len(ids) > 1 {
			word = "sessions"
		}
		if len(made.tests) == 0 {
			return fmt.Errorf("%s %s: nothing there can be a test of %s at %s", word, strings.Join(ids, ", "), h.sub.ID(), phase)
		}
		head := fmt.Sprintf("# Tests of %s, from %s %s. They quote what was said there: read them before you share them.\ntests:\n", h.sub.ID(), word, strings.Join(ids, ", "))
		text := append([]byte(head), made.text.Bytes()...)
		if file != "" {
			return a.createTests(file, text, len(made.tests))
		}
		_, err := a.out.Write(text)
		return err //nolint:wrapcheck // the writer's own error
	})
}

// createTests writes a new file of tests, whole or not at all.
func (a *app) createTests(file string, text []byte, count int) error {
	err := os.MkdirAll(filepath.Dir(file), 0o755) //nolint:gosec // like the other directories of a project
	if err == nil {
		err = wholefile.Create(file, text)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: name a new file, or remove this one first", file)
	}
	if err == nil {
		err = os.Chmod(file, 0o644) //nolint:gosec // like the other files of a project
	}
	if err != nil {
		return fmt.Errorf("write the tests: %w", err)
	}
	a.remarkf("%s in %s", visible.Counted(count, "test"), file)
	return nil
}

// subject returns what a call is about, for the name of a test: " " and the first of its usual
// arguments, or "".
func subject(args map[string]any) string {
	for _, key := range []string{"path", "command", "url", "pattern", "query", "name"} {
		if text, ok := args[key].(string); ok && text != "" {
			return " " + short(oneLine(redact.Text(text)), 60)
		}
	}
	return ""
}

// placeOf names the place of a message in its session.
func placeOf(turn string, step int) string { return fmt.Sprintf("step %d of turn %s", step, turn) }

// recordCalls makes tests from tool calls. A call that this hook denied must be denied, one that
// it asked about must be asked about, and another call that ran must pass. Of a call that
// something else denied or asked about, or that may have reached no hook, it is not known what
// this hook would have answered.
func recordCalls(past *past, h *recordedHook, add func(recordedTest), leave func(leftOut)) {
	eachCall(past.messages, func(c *recorded.Call) {
		by, why, denied := c.Denied()
		asked, approval := past.approvals[[2]string{c.Turn, c.ID}]
		input, seen := past.seen(h.id, c)
		args, ok := objectOf(input)
		unanswered := past.unanswered(h.id, c.Turn, c.Step)
		switch {
		case !h.covers(c.Tool):
			leave(leftTool)
		case unanswered != "":
			leave(unanswered)
		case denied && by == h.id && strings.HasPrefix(why, h.id+" could not decide"):
			leave(leftFailed)
		case approval && asked.By != h.id, !approval && (c.Result == nil || denied && by != h.id || !isGated(c.Result.Class)):
			leave(leftUnknown)
		case !seen:
			leave(leftRewritten)
		case !ok:
			leave(leftUnknown)
		default:
			t := recordedTest{name: c.Tool + subject(args) + ", " + placeOf(c.Turn, c.Step), tool: c.Tool, input: args}
			switch {
			case approval:
				t.expect = "ask" // the reason may have those of others too
			case denied:
				t.expect, t.reason = "deny", why
			}
			add(t)
		}
	})
}

// isGated reports whether a call with a result of this class has surely passed the hooks of
// tool.pre, or was denied there. An aborted call may have ended before.
func isGated(class belay.ResultClass) bool {
	switch class {
	case belay.ClassInvalid, belay.ClassNotFound, belay.ClassScope, belay.ClassAborted:
		return false
	default:
		return true
	}
}

// recordResults makes tests from the results of calls that ran. The results are as the hooks of
// the session left them.
func recordResults(past *past, h *recordedHook, add func(recordedTest), leave func(leftOut)) {
	eachCall(past.messages, func(c *recorded.Call) {
		args, ok := objectOf(c.Final)
		if c.Result == nil || !ok {
			leave(leftUnknown)
			return
		}
		if c.Result.Class == belay.ClassDenied || !isGated(c.Result.Class) {
			return // it never reached this phase
		}
		if !h.covers(c.Tool) {
			leave(leftTool)
			return
		}
		if why := past.unanswered(h.id, c.Turn, c.Step); why != "" {
			leave(why)
			return
		}
		input := map[string]any{"id": c.ID, "tool": c.Tool, "input": args, "text": c.Result.Text}
		if c.Result.IsError {
			input["is_error"], input["class"] = true, string(c.Result.Class)
		}
		add(recordedTest{name: "result of " + c.Tool + subject(args) + ", " + placeOf(c.Turn, c.Step), input: input})
	})
}

// recordPrompts makes tests from the messages of the user. A message that a hook denied is not in
// a transcript, so all must pass. A message that a hook answered is left out: it is not known
// which hook that was.
func recordPrompts(past *past, h *recordedHook, add func(recordedTest), leave func(leftOut)) {
	messages := past.messages
	for i, m := range messages {
		if m.Kind != belay.KindUser || m.IsSkillInjection {
			continue
		}
		next := slices.IndexFunc(messages[i:], func(m *belay.Message) bool { return m.Kind == belay.KindAssistant })
		if next >= 0 {
			if _, byHook := recorded.IsReply(messages[i+next]); byHook {
				leave(leftUnknown)
				continue
			}
		}
		if why := past.unanswered(h.id, m.Turn, 0); why != "" {
			leave(why)
			continue
		}
		input := map[string]any{"text": recorded.Typed(m)}
		if others := len(slices.DeleteFunc(slices.Clone(m.Parts), func(p belay.Part) bool { return p.Type == belay.PartText })); others > 0 {
			input["parts"] = others
		}
		add(recordedTest{name: "message of turn " + m.Turn, input: input})
	}
}

// recordStops makes tests from the last answer of each turn, with which the turn could stop. An
// earlier answer without a call was continued, by this hook or by another one.
func recordStops(past *past, h *recordedHook, add func(recordedTest), leave func(leftOut)) {
	messages := past.messages
	last := make(map[string]int)
	for i, m := range messages {
		last[m.Turn] = i
	}
	for i, m := range messages {
		switch reply, _ := recorded.IsReply(m); {
		case m.Kind != belay.KindAssistant || reply || len(m.Calls()) > 0:
		case last[m.Turn] != i:
			leave(leftUnknown)
		default:
			if why := past.unanswered(h.id, m.Turn, 0); why != "" {
				leave(why)
				continue
			}
			add(recordedTest{name: "end of turn " + m.Turn, input: map[string]any{"text": m.Text()}})
		}
	}
}

// eachCall passes the calls of a session to each.
func eachCall(messages []*belay.Message, each func(*recorded.Call)) {
	for c, err := range recorded.Calls("", func(yield func(*belay.Message, error) bool) {
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}) {
		if err == nil { // the messages were read already
			each(&c)
		}
	}
}

// quotedJSON returns a text as JSON, which is also YAML.
func quotedJSON(text string) string { return encoded(text) }

// objectOf decodes an object. Its numbers stay as they are written.
func objectOf(input json.RawMessage) (object map[string]any, ok bool) {
	decode := json.NewDecoder(bytes.NewReader(input))
	decode.UseNumber()
	return object, decode.Decode(&object) == nil && object != nil
}

// withoutSecrets returns an input as JSON, without what looks like a secret. changed reports
// whether something was removed.
func withoutSecrets(input map[string]any) (text string, changed bool) {
	before := encoded(input)
	var clean func(v any) any
	clean = func(v any) any {
		switch v := v.(type) {
		case string:
			return redact.Text(v)
		case []any:
			all := slices.Clone(v)
			for i := range all {
				all[i] = clean(all[i])
			}
			return all
		case map[string]any:
			all := maps.Clone(v)
			for key := range all {
				all[key] = clean(all[key])
			}
			return all
		}
		return v
	}
	text = encoded(clean(input))
	// The name of a field, or the flag before a value, shows that a value is a secret. A text
	// alone does not.
	if whole := redact.Text(text); json.Valid([]byte(whole)) {
		text = whole
	}
	return text, text != before
}

// encoded returns a value that was decoded from JSON as JSON.
func encoded(value any) string {
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	encode.SetEscapeHTML(false)
	_ = encode.Encode(value) //nolint:errchkjson // it was decoded from JSON
	return string(bytes.TrimSpace(out.Bytes()))
}
