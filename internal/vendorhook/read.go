package vendorhook

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/namedfile"
	"github.com/belay-run/belay/internal/near"
)

// Profile is what differs between vendors.
type Profile struct {
	Vendor dialect.Vendor
	// Unit is the unit of the key timeout.
	Unit time.Duration
	// Timeout returns the time limit of a hook without the key timeout.
	Timeout func(kind dialect.Kind) time.Duration
	// AlwaysRegexp means that a matcher of tools is always a regular expression. Otherwise
	// a matcher of letters, digits and | is a list of names.
	AlwaysRegexp bool
	// Failures means that PostToolUse also runs after a call that failed.
	Failures bool
	// Known are keys of the file besides hooks that Belay knows, but that have nothing to
	// do with hooks.
	Known []string
	// Fields adds fields to standard input.
	Fields func(e *Event, in map[string]any)
	// Env returns the variables of the command.
	Env func(o *Options, e *Event) []string
}

// Options are the settings of [Read].
type Options struct {
	// Project is the directory in which the agent works. Commands run in it.
	Project string
	// Root is the directory of a plugin, or empty.
	Root string
	// Strict makes gates deny when a hook fails.
	Strict bool
	// Grants are what the person who trusted the directory has granted.
	Grants []string
	// Mode is the permission mode in Belay's words.
	Mode string
	// Transcript writes a file with the conversation, in the form of Claude Code, and
	// returns its path. Nil means that there is no such file.
	Transcript Transcript
}

// File is the text of a hook file.
type File struct {
	Path string
	Text []byte
	// Whole means that the file has nothing but hooks, as hooks.json of a plugin.
	Whole bool
}

// Note is something in a hook file that a person should know.
type Note struct {
	File string
	Line int
	// Message says what, and what to do.
	Message string
	// Warning means that the hook probably does not do what its author wants.
	Warning bool
}

// Reading is what hook files declare.
type Reading struct {
	// Hooks are the hooks that run. Equal commands of an event are one of them.
	Hooks []*declare.Declaration
	Notes []Note
	// Declared is how many hooks the files have. Used of them run, Refused do not, and Off are
	// switched off by the file itself. Each refused hook has a note. Own call Belay as a hook of
	// this vendor, and do not run.
	Declared, Used, Refused, Off, Own int
}

// reader reads the hook files of one directory.
type reader struct {
	*Profile
	opts   *Options
	file   *File
	out    *Reading
	count  map[string]int    // hooks for each event
	same   map[string]*proto // hooks by event and command, to run equal commands once
	memory *memory
}

// Read reads hook files of one directory. The error says which file is not valid JSON.
func Read(p *Profile, opts *Options, files ...File) (*Reading, error) {
	r := &reader{Profile: p, opts: opts, out: new(Reading), count: make(map[string]int), same: make(map[string]*proto), memory: newMemory()}
	var problems []error
	off := false
	for i := range files {
		r.file = &files[i]
		root, err := frontmatter.ReadJSON(string(files[i].Text))
		switch {
		case err != nil:
			problems = append(problems, &declare.FaultError{File: files[i].Path, Line: lineOf(err), Message: fmt.Sprintf("this file of %s is not valid JSON, so its hooks do not run: %v", p.Vendor.Title(), err)})
		case root.Kind != frontmatter.Map:
			problems = append(problems, &declare.FaultError{File: files[i].Path, Line: root.Line, Message: "the file must be a JSON object, so its hooks do not run"})
		default:
			off = r.document(root) || off
		}
	}
	if off {
		r.out.Hooks, r.out.Off, r.out.Used = nil, r.out.Used, 0
	}
	if slices.Contains(opts.Grants, "approve") {
		r.addApprover()
	}
	return r.out, errors.Join(problems...)
}

func lineOf(err error) int {
	if e, ok := errors.AsType[*frontmatter.Error](err); ok {
		return e.Line
	}
	return 1
}

func (r *reader) notef(line int, warning bool, format string, args ...any) {
	r.out.Notes = append(r.out.Notes, Note{File: r.file.Path, Line: line, Message: fmt.Sprintf(format, args...), Warning: warning})
}

// refusef notes a hook that does not run.
func (r *reader) refusef(line int, format string, args ...any) {
	r.refuseAllf(1, line, format, args...)
}

// refuseAllf notes several hooks that do not run.
func (r *reader) refuseAllf(count, line int, format string, args ...any) {
	r.out.Refused += count
	r.notef(line, true, format, args...)
}

// document reads a file. It returns true if the file switches all hooks off.
func (r *reader) document(root frontmatter.Value) (off bool) {
	for _, f := range root.Map {
		switch {
		case f.Key == "hooks" && f.Value.Kind == frontmatter.Map:
			r.events(f.Value)
		case f.Key == "hooks":
			r.out.Declared += len(f.Value.List)
			r.refuseAllf(len(f.Value.List), f.Line, "hooks is %s, so none of these hooks run: write an object with events", f.Value.Kind)
		case f.Key == "disableAllHooks" && f.Value.Text == "true":
			r.notef(f.Line, false, "disableAllHooks is set: the hooks of %s in this directory do not run", r.Vendor.Title())
			off = true
		case !r.file.Whole || f.Key == "description" || f.Key == "$schema" || f.Key == "version" || slices.Contains(r.Known, f.Key):
		default:
			if _, ok := r.Vendor.Event(f.Key); ok && f.Value.Kind == frontmatter.List { // some plugins leave out the key hooks
				r.event(f)
				continue
			}
			r.notef(f.Line, false, "unknown key %q: Belay ignores it", f.Key)
		}
	}
	return off
}

func (r *reader) events(v frontmatter.Value) {
	for _, f := range v.Map {
		r.event(f)
	}
}

func (r *reader) event(f frontmatter.Field) {
	event, known := r.Vendor.Event(f.Key)
	groups, count := f.Value.List, declared(f.Value)
	if known || f.Value.Kind == frontmatter.List {
		r.out.Declared += count
	}
	switch {
	case f.Value.Kind != frontmatter.List && known:
		r.refusef(f.Line, "%s is %s, so its hooks do not run: write a list", f.Key, f.Value.Kind)
		return
	case !known && f.Value.Kind != frontmatter.List: // settings beside the events, such as hooks.enabled of Gemini CLI
		r.notef(f.Line, false, "hooks.%s: Belay ignores this key", f.Key)
		return
	case !known:
		var names []string
		for _, e := range r.Vendor.Events() {
			names = append(names, e.Name)
		}
		r.refuseAllf(count, f.Line, "there is no event %q in %s%s: its hooks do not run", f.Key, r.Vendor.Title(), near.Hint(f.Key, names))
		return
	case event.Phase == "":
		r.refuseAllf(count, f.Line, "Belay has no event %s: its hooks do not run", f.Key)
		return
	}
	for _, g := range groups {
		r.group(event, g)
	}
}

// group reads a matcher with its hooks.
func (r *reader) group(event dialect.Event, v frontmatter.Value) {
	if v.Kind != frontmatter.Map {
		r.refusef(v.Line, "an entry of %s is %s, so it does not run: write an object with hooks", event.Name, v.Kind)
		return
	}
	matcher, line := "", v.Line
	var hooks []frontmatter.Value
	listed, direct := false, isDirect(v)
	for _, f := range v.Map {
		switch f.Key {
		case "matcher":
			line = f.Line
			if f.Value.Kind == frontmatter.String {
				matcher = f.Value.Text
			} else if f.Value.Kind != frontmatter.Null {
				r.notef(f.Line, true, "matcher is %s: Belay runs the hooks for everything", f.Value.Kind)
			}
		case "hooks":
			listed = true
			if hooks = f.Value.List; f.Value.Kind != frontmatter.List {
				r.refusef(f.Line, "hooks of %s is %s, so it does not run: write a list", event.Name, f.Value.Kind)
			}
		case "command", "type":
		case "description", "sequential", "id":
		case "timeout", "name", "args", "async", "statusMessage", "if", "shell", "once", "asyncRewake", "rewakeMessage", "rewakeSummary":
			if !direct {
				r.notef(f.Line, true, "%s belongs to a hook, and not beside matcher: Belay ignores it", f.Key)
			}
		default:
			r.notef(f.Line, false, "unknown key %q: Belay ignores it", f.Key)
		}
	}
	switch {
	case direct:
		r.refusef(v.Line, "this hook is not in a list hooks, so %s does not run it, and neither does Belay: write {\"hooks\": [ … ]}", r.Vendor.Title())
	case !listed:
		r.notef(v.Line, true, "an entry of %s has no hooks: it does nothing", event.Name)
	}
	m := r.matcher(event, matcher, line)
	for _, h := range hooks {
		r.hook(event, m, h)
	}
}

func hasKey(v frontmatter.Value, key string) bool {
	return slices.ContainsFunc(v.Map, func(f frontmatter.Field) bool { return f.Key == key })
}

// entry is a hook as its file declares it.
type entry struct {
	kind, command, shell, condition, status string
	rewakeMessage                           string
	args                                    []string
	timeout                                 time.Duration
	async, rewake, closed                   bool
	line                                    int
}

// hook reads one hook.
func (r *reader) hook(event dialect.Event, m *matcher, v frontmatter.Value) {
	if v.Kind != frontmatter.Map {
		r.refusef(v.Line, "a hook of %s is %s, so it does not run: write an object", event.Name, v.Kind)
		return
	}
	e := &entry{kind: "command", line: v.Line, timeout: r.Timeout(event.Kind)}
	for _, f := range v.Map {
		r.key(event, e, f)
	}
	switch {
	case e.kind != "command":
		r.refusef(e.line, "a hook of the type %s does not run: Belay runs only hooks of the type command", e.kind)
		return
	case strings.TrimSpace(e.command) == "":
		r.refusef(e.line, "this hook of %s has no command, so it does not run", event.Name)
		return
	case e.condition != "" && !isTool(event.Kind):
		r.refusef(e.line, "if works only at events of tools, so %s never runs this hook, and neither does Belay", r.Vendor.Title())
		return
	case r.callsBelay(e):
		r.out.Own++
		return
	}
	if e.rewakeMessage != "" && !e.rewake {
		r.notef(e.line, true, "rewakeMessage has no effect without asyncRewake")
	}
	switch {
	case !e.async:
	case e.closed:
		r.notef(e.line, true, "async: nothing waits for this hook of %s, so its failure cannot block, and onFailure has no effect: remove one of the two", event.Name)
	case r.opts.Strict && closesByDefault(event.Phase):
		r.notef(e.line, true, "async: nothing waits for this hook of %s, so its failure does not deny, although strict is set: remove async if the hook has to decide", event.Name)
	}
	r.add(event, m, e)
}

// key reads one key of a hook.
func (r *reader) key(event dialect.Event, e *entry, f frontmatter.Field) {
	switch f.Key {
	case "type":
		e.kind = f.Value.Text
	case "command", "bash":
		e.command = f.Value.Text
	case "args":
		if f.Value.Kind != frontmatter.List {
			r.notef(f.Line, true, "args is %s: Belay runs the command without arguments: write a list", f.Value.Kind)
		}
		for _, arg := range f.Value.List {
			e.args = append(e.args, arg.Text)
		}
	case "timeout", "timeoutSec", "timeout_sec":
		r.timeout(e, f)
	case "if":
		e.condition = f.Value.Text
	case "shell":
		e.shell = f.Value.Text
	case "async":
		e.async = r.isSet(f) || e.async
	case "onFailure":
		switch e.closed = f.Value.Text != "continue" && f.Value.Text != "allow"; {
		case f.Value.Text == "block":
		case e.closed:
			r.notef(f.Line, true, "onFailure: Belay does not know %q: if the hook fails, it blocks", f.Value.Text)
		}
	case "asyncRewake":
		if r.isSet(f) {
			e.async, e.rewake = true, true
		}
	case "rewakeMessage":
		e.rewakeMessage = f.Value.Text
	case "once":
		r.notef(f.Line, false, "once has no effect in this file, as in %s", r.Vendor.Title())
	case "statusMessage", "name":
		if e.status == "" {
			e.status = f.Value.Text
		}
	case "description", "commandWindows", "command_windows", "additionalContextLimit", "rewakeSummary":
	case "url", "prompt", "model", "server", "tool", "input", "headers", "allowedEnvVars": // keys of other types of hooks
	default:
		r.notef(f.Line, false, "unknown key %q of a hook at %s: Belay ignores it", f.Key, event.Name)
	}
}

// isSet returns the value of a key that is true or false.
func (r *reader) isSet(f frontmatter.Field) bool {
	if f.Value.Text != "true" && f.Value.Text != "false" {
		r.notef(f.Line, true, "%s must be true or false: Belay takes false", f.Key)
	}
	return f.Value.Text == "true"
}

func (r *reader) timeout(e *entry, f frontmatter.Field) {
	n, err := strconv.ParseFloat(f.Value.Text, 64)
	if err != nil || n <= 0 {
		r.notef(f.Line, true, "timeout must be a number above 0: Belay uses the default of %s", e.timeout)
		return
	}
	e.timeout = min(time.Duration(n*float64(r.Unit)), 24*time.Hour)
	switch {
	case r.Unit == time.Second && n >= 1000:
		r.notef(f.Line, true, "timeout: %s means %s: %s has seconds, and milliseconds are probably meant", f.Value.Text, e.timeout, r.Vendor.Title())
	case r.Unit == time.Millisecond && n < 100:
		r.notef(f.Line, true, "timeout: %s means %s: %s has milliseconds, and seconds are probably meant", f.Value.Text, e.timeout, r.Vendor.Title())
	}
}

// add makes a declaration of a hook, or adds its matcher to an equal hook.
func (r *reader) add(event dialect.Event, m *matcher, e *entry) {
	argv, ok := r.argv(e)
	if !ok {
		return
	}
	rule, err := readRule(e.condition)
	if err != nil {
		r.notef(e.line, true, "if: %v: Belay runs the hook for everything that its matcher matches", err)
	}
	r.out.Used++
	key := fmt.Sprintf("%s %q %t %t %t %q", event.Name, argv, e.async, e.rewake, e.closed, e.rewakeMessage)
	if first := r.same[key]; first != nil {
		first.when.add(m, rule)
		first.decl.Options.Timeout = max(first.decl.Options.Timeout, e.timeout)
		return
	}
	r.count[event.Name]++
	p := &proto{Profile: r.Profile, opts: r.opts, event: event, async: e.async, rewake: e.rewake, rewakeMessage: e.rewakeMessage, strict: e.closed || r.opts.Strict, memory: r.memory, when: &condition{profile: r.Profile, kind: event.Kind, dir: r.opts.Project}}
	p.when.add(m, rule)
	scripts := namedfile.Find(r.opts.Project, r.opts.Root, argv)
	p.readsTranscript = mentions(argv, scripts, "transcript")
	if e.async && !e.rewake && p.decides() {
		if word := decision(argv, scripts, p.gate()); word != "" {
			r.notef(e.line, true, "async: nothing waits for this hook of %s, so it cannot deny, but its command seems to decide (%q): remove async if it is a guard", event.Name, word)
		}
	}
	p.decl = &declare.Declaration{
		ID: fmt.Sprintf("%s-%d", dashed(event.Name), r.count[event.Name]), Phase: event.Phase, File: r.file.Path, Line: e.line,
		Dir: r.opts.Project, Kind: hook.HandlerCommand, Argv: argv, Scripts: scripts, Protocol: p,
		Options: hook.Options{Description: described(e, argv), Timeout: e.timeout, Match: hook.Match{When: p.when}, Concurrent: true},
	}
	r.limits(event, p)
	r.same[key] = p
	r.out.Hooks = append(r.out.Hooks, p.decl)
}

// limits sets how a hook runs at its phase.
func (r *reader) limits(event dialect.Event, p *proto) {
	o := &p.decl.Options
	if !p.strict {
		o.Failure = hook.Open // the rule of all vendors: after a failure, continue
	}
	switch event.Kind {
	case dialect.SessionStart, dialect.SessionEnd, dialect.UserPromptSubmit, dialect.Stop:
		o.NoInherit = true // these are events of the conversation, and not of a subagent
	default:
	}
	if p.async || event.Kind == dialect.Notification {
		p.detach()
		return
	}
	granted := func(name string, c hook.Capability) {
		if slices.Contains(r.opts.Grants, name) {
			o.Capabilities |= c
		}
	}
	switch event.Kind {
	case dialect.PreToolUse:
		granted("rewrite_input", besides|hook.CanBlock|hook.CanAsk|hook.CanRewriteInput)
	case dialect.PostToolUse:
		granted("rewrite_output", besides|hook.CanRewriteOutput)
	case dialect.PermissionRequest:
		o.Capabilities = besides | hook.CanApprove // without the grant, the hook does not run
	default:
	}
	if o.Capabilities&(hook.CanRewriteInput|hook.CanRewriteOutput) != 0 {
		o.Concurrent = false // hooks that rewrite run one after another
	}
	if p.strict && o.Capabilities&hook.CanRewriteOutput != 0 {
		o.Failure = hook.Closed // the default of tool.post is open: the model would read what the hook hides
	}
}

// detach makes the phase not wait for the hook.
func (p *proto) detach() {
	p.async = true
	o := &p.decl.Options
	if !atGate(p.decl.Phase) {
		o.Execution, o.Concurrent, o.Failure = hook.FireAndRecord, false, hook.Failure{}
		return
	}
	p.decl.Detached = true
	o.Failure, o.Capabilities = hook.Open, hook.CanAudit
}

func atGate(phase string) bool {
	return slices.ContainsFunc(belay.Phases(), func(p hook.AnyPhase) bool { return p.Name() == phase && p.Info().Kind == hook.Gate })
}

// besides are the capabilities that hooks of other agents have without a grant.
const besides = hook.CanAddContext | hook.CanAudit

func described(e *entry, argv []string) string {
	if e.status != "" {
		return e.status
	}
	return argv[len(argv)-1]
}

// dashed returns the name of an event as a part of an id: PreToolUse becomes pre-tool-use.
func dashed(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func isTool(k dialect.Kind) bool {
	switch k {
	case dialect.PreToolUse, dialect.PostToolUse, dialect.PostToolUseFailure, dialect.PermissionRequest:
		return true
	default:
		return false
	}
}
