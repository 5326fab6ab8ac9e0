package vendorhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// exitBlock is the exit code that blocks, in all dialects.
const exitBlock = 2

// said is what a command has answered.
type said struct {
	denied, stopped, asked, allowed bool
	json                            bool // the output is a JSON object

	reason  string          // of a denial, a question or an approval
	stop    string          // why everything stops
	context []string        // for the model
	advice  string          // the part of context that is inside hookSpecificOutput
	message string          // for the user
	plain   string          // output that is not JSON
	input   json.RawMessage // the new input of a tool, or nil
	result  *string         // the new result of a tool, or nil
	fault   error           // the answer cannot be understood
}

// Read returns the answer of the phase.
func (p *proto) Read(ctx context.Context, e *worker.Envelope, r *declare.Reply) (json.RawMessage, error) {
	if p.wake(ctx, e, r) {
		return nil, nil
	}
	if p.async {
		return nil, p.unheard(r)
	}
	s := p.understand(r)
	ev, err := p.read(e)
	if err != nil {
		return nil, err
	}
	if s.fault != nil && !s.denied && !s.stopped {
		return nil, s.fault
	}
	answer := p.answer(ev, s)
	if len(answer) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return nil, failed("the answer of the hook cannot be translated", err)
	}
	return data, nil
}

// unheard returns why a hook failed for which nothing waits. It also fails if it wants to
// decide, because its author believes that it does.
func (p *proto) unheard(r *declare.Reply) error {
	stderr := fmt.Errorf("its standard error: %s", cmp.Or(r.Stderr, "empty"))
	switch s := readOutput(r.Stdout); {
	case r.Err != nil:
		return r.Err
	case p.decides() && !p.rewake && (r.Code == exitBlock || s.denied || s.stopped || p.asks(s)):
		return failed("the hook wants to decide, but nothing waits for it: remove async", stderr)
	case r.Code != 0:
		return failed(fmt.Sprintf("exit code %d", r.Code), stderr)
	}
	return nil
}

// decides reports whether the answer of a hook at this event can deny something, or make the
// agent continue.
func (p *proto) decides() bool {
	return p.gate() || p.event.Kind == dialect.Stop || p.event.Kind == dialect.SubagentStop
}

// understand reads exit code and output. It looks for a denial first: a denial counts with
// every exit code, and in output that is not valid JSON.
func (p *proto) understand(r *declare.Reply) *said {
	s := readOutput(r.Stdout)
	switch {
	case r.Code == exitBlock:
		if !s.denied || !s.json {
			s.reason = strings.TrimSpace(r.Stderr)
		}
		s.reason = cmp.Or(s.reason, strings.TrimSpace(r.Stderr))
		s.denied, s.input, s.result, s.plain = true, nil, nil, ""
	case s.denied || s.stopped:
	case r.Cut && p.gate():
		s.denied, s.reason = true, "the hook printed too much, so Belay could not read its decision"
	case r.Err != nil:
		s.fault = r.Err
	case r.Code != 0 && s.json && s.fault == nil && p.Vendor == dialect.ClaudeCode && (p.open() || p.asks(s)): // it reads the output with every exit code, but here a failure allows nothing
		s.allowed, s.input, s.result = false, nil, nil
	case r.Code != 0:
		s.fault = failed(fmt.Sprintf("exit code %d", r.Code), fmt.Errorf("its standard error: %s", cmp.Or(r.Stderr, "empty")))
	}
	return s
}

// gate reports whether the hook decides about something that has not happened yet.
func (p *proto) gate() bool {
	return slices.Contains([]dialect.Kind{dialect.PreToolUse, dialect.UserPromptSubmit, dialect.PermissionRequest}, p.event.Kind)
}

// asks reports whether the answer makes Belay ask a person.
func (p *proto) asks(s *said) bool { return s.asked && p.event.Kind == dialect.PreToolUse }

// open reports whether Belay continues after a failure of the hook.
func (p *proto) open() bool {
	f := p.decl.Options.Failure
	return f == hook.Open || f == hook.Failure{} && !p.strict && !closesByDefault(p.decl.Phase)
}

// closesByDefault reports whether Belay stops after a failure of a hook that names no
// failure mode.
func closesByDefault(phase string) bool {
	return slices.ContainsFunc(belay.Phases(), func(p hook.AnyPhase) bool { return p.Name() == phase && p.Info().Failure == hook.Closed })
}

// readOutput reads standard output.
func readOutput(stdout string) *said {
	s := new(said)
	text := strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(stdout, "\x00", ""), "\ufeff"))
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		s.plain = text
		if word := deniedText(text); word != "" {
			s.denied, s.reason = true, "the output of the hook is not valid JSON, but it says "+word
		}
		return s
	}
	s.json = true
	top := keysOf([]byte(text))
	own := make(keys)
	for _, v := range top["hookSpecificOutput"] {
		own.join(keysOf(v))
	}
	request := make(keys) // of a PermissionRequest
	for _, v := range slices.Concat(own["decision"], top["decision"]) {
		request.join(keysOf(v))
	}
	s.decide(top, own, request)
	s.message, s.advice = top.text("systemMessage"), own.text("additionalContext")
	for _, k := range []keys{own, top} {
		if text := k.text("additionalContext"); strings.TrimSpace(text) != "" && !slices.Contains(s.context, text) {
			s.context = append(s.context, text)
		}
	}
	for _, key := range []string{"updatedInput", "tool_input", "updated_input"} {
		if v := own.last(key); v != nil && v[0] == '{' {
			s.input = v
		}
	}
	for _, key := range []string{"updatedToolOutput", "updatedMCPToolOutput", "tool_output"} {
		if v := own.last(key); v != nil && string(v) != "null" {
			text := resultText(v)
			s.result = &text
		}
	}
	return s
}

// resultText returns the text of a new result. Claude Code has a form for each tool: a text,
// the output of a command, or a list of texts.
func resultText(v json.RawMessage) string {
	var text string
	var parts []struct {
		Text string `json:"text"`
	}
	var form struct {
		Stdout  *string         `json:"stdout"`
		Stderr  string          `json:"stderr"`
		Content json.RawMessage `json:"content"`
	}
	switch {
	case json.Unmarshal(v, &text) == nil:
		return text
	case json.Unmarshal(v, &parts) == nil:
		var all []string
		for _, p := range parts {
			all = append(all, p.Text)
		}
		return strings.Join(all, "\n")
	case json.Unmarshal(v, &form) != nil:
		return string(v)
	case form.Stdout != nil:
		return strings.TrimSpace(*form.Stdout + "\n" + form.Stderr)
	case len(form.Content) > 0 && (form.Content[0] == '"' || form.Content[0] == '['):
		return resultText(form.Content)
	default:
		return string(v)
	}
}

// decide reads the decisions of an answer. If an answer has several, the most severe one
// counts.
func (s *said) decide(top, own, request keys) {
	for _, v := range top["continue"] {
		if string(bytes.TrimSpace(v)) == "false" {
			s.stopped = true
		}
	}
	s.stop = cmp.Or(top.text("stopReason"), top.text("reason"))
	s.reason = cmp.Or(own.text("permissionDecisionReason"), request.text("message"), top.text("reason"), own.text("reason"), top.text("permissionDecisionReason"))
	for _, v := range slices.Concat(own["permissionDecision"], top["permissionDecision"], top["decision"], own["decision"], request["behavior"]) {
		var word string
		if json.Unmarshal(v, &word) != nil {
			if v[0] != '{' && string(v) != "null" {
				s.fault = failed("the decision of the hook is not a text", nil)
			}
			continue
		}
		switch word = strings.ToLower(strings.TrimSpace(word)); {
		case slices.Contains(denials, word):
			s.denied = true
		case word == "ask" || word == "defer":
			s.asked = true
		case word == "allow" || word == "approve":
			s.allowed = true
		case word != "":
			s.fault = failed(fmt.Sprintf("the decision %q of the hook is unknown", word), nil)
		}
	}
}

// denials are the words that deny, in all dialects.
var denials = []string{"deny", "block", "denied", "blocked", "reject", "rejected"}

// denial finds a decision that denies in a text that is not valid JSON.
var denial = lazyregexp.New(`(?i)["'](?:permissionDecision|decision|behavior)\\?["']\s*:\s*\\?["']\s*(` + strings.Join(denials, "|") + `)\s*\\?["']|["']continue\\?["']\s*:\s*(false)`)

var (
	colours = lazyregexp.New(`\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]`)
	escapes = lazyregexp.New(`\\u00[0-9A-Fa-f]{2}`)
)

// deniedText returns the denial in a text that is not valid JSON, or "".
func deniedText(text string) string {
	plain := colours.ReplaceAllString(text, "")
	plain = escapes.ReplaceAllStringFunc(plain, func(e string) string {
		var r string
		if json.Unmarshal([]byte(`"`+e+`"`), &r) != nil {
			return e
		}
		return r
	})
	return cmp.Or(denial.FindString(text), denial.FindString(plain))
}

// keys are all values of each key of an object, in order. A key can occur twice.
type keys map[string][]json.RawMessage

func keysOf(data []byte) keys {
	all := make(keys)
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return all
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return all
		}
		all[name] = append(all[name], bytes.TrimSpace(value))
	}
	return all
}

func (k keys) join(other keys) {
	for name, values := range other {
		k[name] = append(k[name], values...)
	}
}

// last returns the last value of a key, or nil.
func (k keys) last(key string) json.RawMessage {
	if v := k[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return nil
}

// text returns the last value of a key if it is a text, or "".
func (k keys) text(key string) string {
	var s string
	_ = json.Unmarshal(k.last(key), &s) // another kind of value is no text
	return s
}
