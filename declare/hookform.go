package declare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/phasejson"
)

// defaultTimeout is the timeout of hooks that declare none.
const defaultTimeout = 5 * time.Second

// foreign maps the event names of Claude Code to similar phases of Belay.
var foreign = map[string]string{
	"PreToolUse": "tool.pre", "PostToolUse": "tool.post", "UserPromptSubmit": "user.prompt.submit", "Stop": "turn.stop",
	"SubagentStop": "subagent.stop", "SessionStart": "session.start", "SessionEnd": "session.end", "PreCompact": "turn.pre_compaction",
}

// isForeign returns an explanation if the hooks have the format of another program, or
// "".
func isForeign(v frontmatter.Value) string {
	if v.Kind != frontmatter.Map {
		return ""
	}
	for _, f := range v.Map {
		if phase := foreign[f.Key]; phase != "" {
			return fmt.Sprintf("these hooks have the format of Claude Code, which Belay does not read: write a list, hooks: [{id: …, phase: %s, match: {tools: [shell]}, run: ./check.sh}]; %s is called %s", phase, f.Key, phase)
		}
	}
	return ""
}

// list reads a list of hooks, or a mapping from buckets to lists.
func (r *reading) list(v frontmatter.Value) {
	if why := isForeign(v); why != "" {
		r.faultf(v.Line, "%s", why)
		return
	}
	switch v.Kind {
	case frontmatter.List:
		for _, item := range v.List {
			r.declaration(item, "")
		}
	case frontmatter.Map:
		if slices.ContainsFunc(v.Map, func(f frontmatter.Field) bool { return f.Key == "id" || f.Key == "phase" }) {
			r.faultf(v.Line, "hooks must be a list, but it is a single hook: write - before its first key, and indent the other keys in the same way")
			return
		}
		r.buckets(v)
	default:
		r.faultf(v.Line, "hooks is %s: write a list of hooks", v.Kind)
	}
}

var validID = lazyregexp.New(`^[A-Za-z0-9._:/-]{1,128}$`)

// declaration reads one hook. bucket is the phase of its bucket, or "".
func (r *reading) declaration(v frontmatter.Value, bucket string) {
	before := len(r.faults)
	d := &Declaration{File: r.file, Line: v.Line, Dir: r.dir, Phase: bucket, Secrets: r.secrets}
	d.Options.Timeout = defaultTimeout
	h := &hookReading{reading: r, d: d, at: make(map[string]int)}
	for _, f := range v.Map { // read the phase first, because other keys depend on the phase
		if f.Key == "phase" && f.Value.Kind != frontmatter.Null {
			h.phase(f.Value, bucket)
		}
		h.at[f.Key] = f.Line
		if f.Key == "tests" {
			d.tests = &testSource{value: f.Value}
		}
	}
	v.Map = slices.DeleteFunc(slices.Clone(v.Map), func(f frontmatter.Field) bool { return f.Key == "tests" }) // Tests reads it
	if d.Phase != "" && h.wire == nil && len(r.faults) == before {
		h.wire = r.wire(d.Phase, v.Line)
	}
	r.mapping(v, aHook, h.form())
	if v.Kind == frontmatter.Map {
		h.whole(v)
	}
	d.wire = h.wire
	r.lines[d] = h.at
	r.declared = append(r.declared, d)
	r.faulty[d] = len(r.faults) > before
}

func (r *reading) wire(phase string, line int) *phasejson.Phase {
	if w := r.wires[phase]; w != nil {
		return w
	}
	w, err := phasejson.New(phase)
	if meant := foreign[phase]; err != nil && meant != "" {
		r.faultf(line, "there is no phase %q (did you mean %q?): `belay hooks phases` lists them", phase, meant)
		return nil
	}
	if err != nil {
		r.faultf(line, "%v", err)
		return nil
	}
	r.wires[phase] = w
	return w
}

func (r *reading) condition(phase *phasejson.Phase, text string) (*condition, error) {
	env := r.envs[phase.Name()]
	if env == nil {
		var err error
		if env, err = environment(phase); err != nil {
			return nil, err
		}
		r.envs[phase.Name()] = env
	}
	return compile(env, phase, text)
}

type hookReading struct {
	*reading
	d     *Declaration
	wire  *phasejson.Phase // nil if the phase is unknown
	kinds []string         // the keys of the hook that say what runs
	at    map[string]int   // the lines of the keys
}

func (h *hookReading) phase(v frontmatter.Value, bucket string) {
	name := h.text(v, "phase")
	if name == "" {
		return
	}
	if bucket != "" && name != bucket {
		h.faultf(v.Line, "the bucket is for the phase %s, but the hook names the phase %s: remove the key phase, or move the hook to another bucket", bucket, name)
		return
	}
	h.wire = h.reading.wire(name, v.Line)
	h.d.Phase = name
}

// form returns a reading function for each key of a hook.
func (h *hookReading) form() map[string]func(frontmatter.Value) {
	d, o := h.d, &h.d.Options
	into := func(to *string, key string) func(frontmatter.Value) {
		return func(v frontmatter.Value) { *to = h.text(v, key) }
	}
	list := func(to *[]string, key string) func(frontmatter.Value) {
		return func(v frontmatter.Value) { *to = h.texts(v, key) }
	}
	flag := func(key string, set func(bool)) func(frontmatter.Value) {
		return func(v frontmatter.Value) { set(h.boolean(v, key)) }
	}
	form := map[string]func(frontmatter.Value){
		"id":           h.id,
		"name":         into(&o.Name, "name"),
		"description":  into(&o.Description, "description"),
		"version":      into(&o.Version, "version"),
		"phase":        func(frontmatter.Value) {}, // the method declaration has already read the phase
		"match":        h.match,
		"tests":        func(frontmatter.Value) {}, // the method declaration has taken it
		"env":          h.env,
		"dialect":      h.dialect,
		"timeout":      func(v frontmatter.Value) { o.Timeout = h.duration(v, "timeout") },
		"after":        list(&o.After, "after"),
		"before":       list(&o.Before, "before"),
		"priority":     func(v frontmatter.Value) { o.Priority = h.integer(v, "priority") },
		"execution":    h.execution,
		"concurrent":   flag("concurrent", func(b bool) { o.Concurrent = b }),
		"failure":      h.failure,
		"visibility":   h.visibility,
		"capabilities": h.capabilities,
		"idempotent":   flag("idempotent", func(b bool) { o.Idempotent = b }),
		"retry":        h.retry,
		"shadow":       flag("shadow", func(b bool) { o.Shadow = b }),
		"inherit":      flag("inherit", func(b bool) { o.NoInherit = !b }),
		"enabled":      flag("enabled", func(b bool) { o.Disabled = !b }),
	}
	runs := func(key string, kind hook.HandlerKind, read func(frontmatter.Value)) {
		form[key] = func(v frontmatter.Value) {
			h.kinds = append(h.kinds, key)
			d.Kind = kind
			read(v)
		}
	}
	runs("run", hook.HandlerCommand, func(v frontmatter.Value) {
		if text := h.text(v, "run"); text != "" {
			d.Argv = []string{"sh", "-c", text}
		}
	})
	runs("command", hook.HandlerCommand, func(v frontmatter.Value) { d.Argv = h.argv(v, "command") })
	runs("worker", hook.HandlerWorker, func(v frontmatter.Value) { d.Argv = h.argv(v, "worker") })
	runs("webhook", hook.HandlerWebhook, h.webhook)
	runs("action", hook.HandlerAction, h.action)
	return form
}

// argv reads a program and its arguments.
func (h *hookReading) argv(v frontmatter.Value, key string) []string {
	if v.Kind == frontmatter.String {
		h.faultf(v.Line, "%s is a text: write the program and its arguments as a list, [./check, --strict], or use run for a line of shell", key)
		return nil
	}
	if v.Kind != frontmatter.List || len(v.List) == 0 {
		h.faultf(v.Line, "%s is not a list, or is empty: write the program and its arguments, [./check, --strict]", key)
		return nil
	}
	argv := make([]string, 0, len(v.List))
	for i, item := range v.List {
		if item.Kind == frontmatter.String && item.Text == "" && i > 0 {
			argv = append(argv, "")
			continue
		}
		argv = append(argv, h.text(item, "an entry of "+key))
		if strings.ContainsRune(item.Text, 0) {
			h.faultf(item.Line, "an entry of %s has a zero byte in it: remove it", key)
		}
	}
	return argv
}

func (h *hookReading) id(v frontmatter.Value) {
	h.d.ID = h.text(v, "id")
	if h.d.ID != "" && !validID.MatchString(h.d.ID) {
		h.faultf(v.Line, "id %q is invalid: use 1 to 128 letters, digits and . _ : / -", h.d.ID)
	}
}

// own are the variables that only Belay sets.
var own = []string{"BELAY_PROJECT_DIR", "BELAY_SESSION", "BELAY_PHASE"}

func (h *hookReading) env(v frontmatter.Value) {
	h.d.Env = h.texts(v, "env")
	for i, entry := range h.d.Env {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case entry == "":
		case !variable.MatchString(name):
			h.faultf(v.List[i].Line, "%q is not the name of an environment variable: write NAME, to pass it on, or NAME=value", name)
		case slices.Contains(own, name):
			h.faultf(v.List[i].Line, "Belay itself sets the variable %s: remove it from env", name)
		}
	}
}

func (h *hookReading) match(v frontmatter.Value) {
	m := &h.d.Options.Match
	labelled := func(label, what string, line int) {
		if h.wire != nil && !slices.Contains(h.wire.Info().Labels, label) {
			h.faultf(line, "%s: inputs of %s have no %s (they have: %s)", what, h.d.Phase, label, strings.Join(h.wire.Info().Labels, ", "))
		}
	}
	h.mapping(v, "match", map[string]func(frontmatter.Value){
		"tools": func(v frontmatter.Value) {
			m.Tools = h.texts(v, "tools")
			labelled("tool", "tools", v.Line)
		},
		"agents": func(v frontmatter.Value) { m.Agents = h.texts(v, "agents") },
		"labels": func(v frontmatter.Value) {
			if v.Kind != frontmatter.Map {
				h.faultf(v.Line, "labels is %s: write a mapping of labels to lists of patterns", v.Kind)
				return
			}
			m.Labels = make(map[string][]string)
			for _, f := range v.Map {
				m.Labels[f.Key] = h.texts(f.Value, f.Key)
				labelled(f.Key, "labels", f.Line)
			}
		},
		"when": func(v frontmatter.Value) {
			text := h.text(v, "when")
			if text == "" || h.wire == nil {
				return
			}
			condition, err := h.condition(h.wire, text)
			if err != nil {
				h.faultf(v.Line, "when: %v", err)
				return
			}
			m.When = condition
		},
	})
}

func (h *hookReading) execution(v frontmatter.Value) {
	words := []string{"blocking", "deadline", "fire_and_record", "background"}
	h.word(v, "execution", words, func(s string) error { return h.d.Options.Execution.UnmarshalText([]byte(s)) })
}

func (h *hookReading) visibility(v frontmatter.Value) {
	words := []string{"internal", "debug", "user_audit", "user_visible"}
	h.word(v, "visibility", words, func(s string) error { return h.d.Options.Visibility.UnmarshalText([]byte(s)) })
}

func (h *hookReading) capabilities(v frontmatter.Value) {
	if v.Kind == frontmatter.List && len(v.List) == 0 {
		h.d.Options.Capabilities = hook.NoCapability
		return
	}
	for i, name := range h.texts(v, "capabilities") {
		if name == "" {
			continue
		}
		one, err := hook.ParseCapabilities(name)
		switch {
		case err != nil:
			h.faultf(v.List[i].Line, "%v", err)
		case h.wire != nil && !h.wire.Info().Capabilities.Has(one):
			h.faultf(v.List[i].Line, "capabilities: %s does not support %s (it supports %s)", h.d.Phase, name, h.wire.Info().Capabilities)
		}
		h.d.Options.Capabilities |= one
	}
}

// failure reads the failure mode: closed, open, or a mapping with a fallback answer.
func (h *hookReading) failure(v frontmatter.Value) {
	if v.Kind != frontmatter.Map {
		h.word(v, "failure", []string{"closed", "open"}, func(s string) error {
			switch s {
			case "closed":
				h.d.Options.Failure = hook.Closed
				return nil
			case "open":
				h.d.Options.Failure = hook.Open
				return nil
			default:
				return hook.ErrNotFound
			}
		})
		return
	}
	h.mapping(v, "failure", map[string]func(frontmatter.Value){"fallback": func(v frontmatter.Value) {
		if h.wire == nil {
			return
		}
		failure, err := h.wire.Fallback(withReminders(asJSON(v)))
		if err != nil {
			h.faultf(v.Line, "fallback: not a valid answer at %s: %v", h.d.Phase, err)
		}
		h.d.Options.Failure = failure
	}})
}

func (h *hookReading) retry(v frontmatter.Value) {
	r := &h.d.Options.Retry
	h.mapping(v, "retry", map[string]func(frontmatter.Value){
		"attempts":    func(v frontmatter.Value) { r.Attempts = h.integer(v, "attempts") },
		"delay":       func(v frontmatter.Value) { r.Delay = h.duration(v, "delay") },
		"exponential": func(v frontmatter.Value) { r.Exponential = h.boolean(v, "exponential") },
		"cap":         func(v frontmatter.Value) { r.Cap = h.duration(v, "cap") },
		"jitter":      func(v frontmatter.Value) { r.Jitter = h.number(v, "jitter") },
	})
}

// runKeys are the keys that say what a hook runs. A hook has exactly one of them.
var runKeys = []string{"run", "command", "worker", "webhook", "action"}

// whole checks the rules that involve several keys.
func (h *hookReading) whole(v frontmatter.Value) {
	d := h.d
	if _, ok := h.at["id"]; !ok {
		h.faultf(v.Line, "the hook has no id: give it one, id: no-prod")
	}
	if _, ok := h.at["phase"]; !ok && d.Phase == "" {
		h.faultf(v.Line, "the hook has no phase: name one, phase: tool.pre; `belay hooks phases` lists them")
	}
	switch {
	case len(h.kinds) > 1:
		h.faultf(h.at[h.kinds[1]], "the hook has two keys that say what runs, %s: remove one of them", strings.Join(h.kinds, " and "))
	case len(h.kinds) == 0:
		form, typo := h.form(), false
		for key := range h.at {
			_, known := form[key]
			typo = typo || !known && near.Hint(key, runKeys) != ""
		}
		if !typo { // an unknown key is already reported as a fault
			h.faultf(v.Line, "the hook runs nothing: give it one of %s", strings.Join(runKeys, ", "))
		}
	}
	if line, ok := h.at["env"]; ok && d.Kind != hook.HandlerCommand && d.Kind != hook.HandlerWorker && len(h.kinds) == 1 {
		h.faultf(line, "env works only for commands and workers: remove it")
	}
	if d.Dialect != nil {
		h.checkDialect()
	}
	if d.ID == "" || d.Phase == "" {
		return
	}
	key := d.Phase + " " + d.ID
	if place, ok := h.places[key]; ok {
		h.faultf(h.at["id"], "the id %q is already used on %s, by the hook at %s: choose another", d.ID, d.Phase, place)
		return
	}
	h.places[key] = (&FaultError{h.file, v.Line, ""}).place()
}

func (f *FaultError) place() string { return strings.TrimSuffix(f.Error(), ": ") }
