package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/recorded"
	"github.com/belay-run/belay/internal/redact"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/serve/api"
)

// recorders make tests from the messages of a session, for each phase whose input a transcript
// has.
var recorders = map[string]func(past *past, hook string, add func(recordedTest), leave func()){
	belay.ToolPre.Name():          recordCalls,
	belay.ToolPost.Name():         recordResults,
	belay.UserPromptSubmit.Name(): recordPrompts,
	belay.TurnStop.Name():         recordStops,
}

// past is what a session has: its messages, and its approvals by turn and call. The questions of
// tools are left out.
type past struct {
	messages  []*belay.Message
	approvals map[[2]string]belay.Approval
}

// pastOf reads what a session has, without what a fork has copied.
func pastOf(ctx context.Context, r records, session *api.Session) (*past, error) {
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
	return p, nil
}

// recordedTest is a test of a hook, made from a session.
type recordedTest struct {
	name   string
	tool   string         // for tool.pre
	input  map[string]any // the arguments of the tool, or the input of the phase
	expect string         // "" means pass
}

// recordTests prints tests for a hook, made from what a session has for its phase.
func (a *app) recordTests(ctx context.Context, h *testedHook, session string) error {
	record := recorders[h.sub.Phase().Name()]
	if record == nil {
		return usage("hook %s is at %s: --record makes tests for hooks at %s", h.sub.ID(), h.sub.Phase().Name(), strings.Join(slices.Sorted(maps.Keys(recorders)), ", "))
	}
	return a.records(ctx, func(r records) error {
		found, err := findRecord(ctx, r, session)
		if err != nil {
			return err
		}
		has, err := pastOf(ctx, r, &found)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		fmt.Fprintf(&out, "# Tests of %s, from session %s. They quote the session: read them before you share them.\ntests:\n", h.sub.ID(), visible.OneLine(found.ID))
		seen, left := make(map[string]bool), 0
		record(has, h.sub.ID(), func(t recordedTest) {
			test := t.yaml()
			if !seen[test] {
				seen[test] = true
				fmt.Fprintf(&out, "  - name: %s\n%s", quotedJSON(t.name), test)
			}
		}, func() { left++ })
		if len(seen) == 0 {
			return fmt.Errorf("session %s has nothing that can be a test of %s at %s", found.ID, h.sub.ID(), h.sub.Phase().Name())
		}
		if left > 0 {
			a.remarkf("%s left out: it is not known what this hook would have answered", visible.Counted(left, "case"))
		}
		_, err = a.out.Write(out.Bytes())
		return err //nolint:wrapcheck // the writer's own error
	})
}

// yaml returns the test without its name.
func (t *recordedTest) yaml() string {
	expect := cmp.Or(t.expect, "pass")
	if t.tool == "" {
		return fmt.Sprintf("    input: %s\n    expect: %s\n", withoutSecrets(t.input), expect)
	}
	return fmt.Sprintf("    tool: %s\n    args: %s\n    expect: %s\n", quotedJSON(t.tool), withoutSecrets(t.input), expect)
}

// placeOf names the place of a message in its session.
func placeOf(turn string, step int) string { return fmt.Sprintf("step %d of turn %s", step, turn) }

// recordCalls makes tests from tool calls. A call that this hook denied must be denied, one that
// it asked about must be asked about, and another call that ran must pass. Of a call that
// something else denied or asked about, or that may have reached no hook, it is not known what
// this hook would have answered.
func recordCalls(past *past, hook string, add func(recordedTest), leave func()) {
	eachCall(past.messages, func(c *recorded.Call) {
		by, why, denied := c.Denied()
		args, ok := objectOf(c.Input)
		asked, approval := past.approvals[[2]string{c.Turn, c.ID}]
		switch {
		case !ok, approval && asked.By != hook, !approval && (c.Result == nil || denied && by != hook || !isGated(c.Result.Class)):
			leave()
			return
		}
		t := recordedTest{name: c.Tool + ", " + placeOf(c.Turn, c.Step), tool: c.Tool, input: args}
		switch {
		case approval:
			t.expect = "ask" // the reason may have those of others too
		case denied:
			t.expect = fmt.Sprintf("{decision: deny, reason: %s}", quotedJSON(redact.Text(why)))
		}
		add(t)
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
func recordResults(past *past, _ string, add func(recordedTest), leave func()) {
	eachCall(past.messages, func(c *recorded.Call) {
		args, ok := objectOf(c.Final)
		if c.Result == nil || !ok {
			leave()
			return
		}
		if c.Result.Class == belay.ClassDenied || !isGated(c.Result.Class) {
			return // it never reached this phase
		}
		input := map[string]any{"id": c.ID, "tool": c.Tool, "input": args, "text": c.Result.Text}
		if c.Result.IsError {
			input["is_error"], input["class"] = true, string(c.Result.Class)
		}
		add(recordedTest{name: "result of " + c.Tool + ", " + placeOf(c.Turn, c.Step), input: input})
	})
}

// recordPrompts makes tests from the messages of the user. A message that a hook denied is not in
// a transcript, so all must pass. A message that a hook answered is left out: it is not known
// which hook that was.
func recordPrompts(past *past, _ string, add func(recordedTest), leave func()) {
	messages := past.messages
	for i, m := range messages {
		if m.Kind != belay.KindUser || m.IsSkillInjection {
			continue
		}
		next := slices.IndexFunc(messages[i:], func(m *belay.Message) bool { return m.Kind == belay.KindAssistant })
		if next >= 0 {
			if _, byHook := recorded.IsReply(messages[i+next]); byHook {
				leave()
				continue
			}
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
func recordStops(past *past, _ string, add func(recordedTest), leave func()) {
	messages := past.messages
	last := make(map[string]int)
	for i, m := range messages {
		last[m.Turn] = i
	}
	for i, m := range messages {
		switch reply, _ := recorded.IsReply(m); {
		case m.Kind != belay.KindAssistant || reply || len(m.Calls()) > 0:
		case last[m.Turn] != i:
			leave()
		default:
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
func quotedJSON(text string) string {
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	encode.SetEscapeHTML(false)
	_ = encode.Encode(text) //nolint:errchkjson // a text can always be encoded
	return string(bytes.TrimSpace(out.Bytes()))
}

// objectOf decodes an object. Its numbers stay as they are written.
func objectOf(input json.RawMessage) (object map[string]any, ok bool) {
	decode := json.NewDecoder(bytes.NewReader(input))
	decode.UseNumber()
	return object, decode.Decode(&object) == nil && object != nil
}

// withoutSecrets returns an input as JSON, without what looks like a secret.
func withoutSecrets(input map[string]any) string {
	var clean func(v any) any
	clean = func(v any) any {
		switch v := v.(type) {
		case string:
			return redact.Text(v)
		case []any:
			for i := range v {
				v[i] = clean(v[i])
			}
		case map[string]any:
			for key := range v {
				v[key] = clean(v[key])
			}
		}
		return v
	}
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	encode.SetEscapeHTML(false)
	_ = encode.Encode(clean(input)) //nolint:errchkjson // it was decoded from JSON
	text := string(bytes.TrimSpace(out.Bytes()))
	// The name of a field, or the flag before a value, shows that a value is a secret. A text
	// alone does not.
	if whole := redact.Text(text); json.Valid([]byte(whole)) {
		return whole
	}
	return text
}
