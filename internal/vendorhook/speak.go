package vendorhook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/namedfile"
)

// Speak makes the command of a hook in one of Belay's own files run as the vendor runs it,
// see [declare.Dialect]. The grants in opts are ignored: the capabilities of the hook say
// what it may do. The notes say what is odd about the hook.
func Speak(p *Profile, opts *Options, d *declare.Declaration) ([]Note, error) {
	event, ok := p.Vendor.Event(d.Dialect.Event)
	switch {
	case !ok || event.Phase == "":
		return nil, fmt.Errorf("dialect: Belay runs no hooks of %s at %q", p.Vendor.Title(), d.Dialect.Event)
	case event.Phase != d.Phase:
		return nil, fmt.Errorf("dialect: %s is an event of the phase %s, and the hook names the phase %s: write phase: %s", event.Name, event.Phase, d.Phase, event.Phase)
	}
	own := *opts
	own.Grants = nil
	for name, c := range map[string]hook.Capability{"rewrite_input": hook.CanRewriteInput, "rewrite_output": hook.CanRewriteOutput} {
		if d.Options.Capabilities&c != 0 {
			own.Grants = append(own.Grants, name)
		}
	}
	r := &reader{Profile: p, opts: &own, file: &File{Path: d.File}, out: new(Reading)}
	m := r.matcher(event, d.Dialect.Matcher, d.Line)
	rule, err := readRule(d.Dialect.If)
	if err != nil {
		return nil, fmt.Errorf("dialect: if: %w", err)
	}
	if rule != nil && !isTool(event.Kind) {
		return nil, errors.New("dialect: if works only at events of tools: remove it")
	}
	spoken := &proto{Profile: p, opts: &own, event: event, async: d.Options.Execution == hook.FireAndRecord || d.Dialect.Async, rewake: d.Dialect.Rewake, rewakeMessage: d.Dialect.RewakeMessage, memory: newMemory(), decl: d}
	spoken.when = &condition{profile: p, kind: event.Kind, dir: own.Project}
	spoken.when.add(m, rule)
	spoken.readsTranscript = mentions(d.Argv, namedfile.Find(own.Project, own.Root, d.Argv), "transcript")
	d.Protocol, d.Dir, d.Options.Match.When = spoken, own.Project, spoken.when
	if d.Dialect.Async {
		spoken.detach()
	}
	return r.out.Notes, nil
}

// Fingerprint identifies a hook of [Source] for [declare.Dialect.Original].
func Fingerprint(from *declare.Dialect, argv []string) string {
	text := fmt.Appendf(nil, "%s %s %q %q %t %t %q", from.Agent, from.Event, from.Matcher, from.If, from.Async, from.Rewake, argv)
	if from.RewakeMessage != "" { // files of an older import do not have it
		text = fmt.Appendf(text, " %q", from.RewakeMessage)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// IsCopy reports whether a hook with the key dialect does what a hook of [Source] does.
func IsCopy(d *declare.Declaration, from *declare.Dialect, argv []string) bool {
	if d.Dialect == nil {
		return false
	}
	own := *d.Dialect
	own.Original = from.Original
	return own == *from && slices.Equal(d.Argv, argv)
}

// IsSuccessor reports whether a hook with the key dialect was imported from a hook of
// [Source], also if somebody has changed it since. Nothing may wait less for the successor of
// a gate.
func IsSuccessor(d *declare.Declaration, from *declare.Dialect, argv []string) bool {
	own := d.Dialect
	return own != nil && own.Original != "" && own.Original == Fingerprint(from, argv) && own.Agent == from.Agent && own.Event == from.Event && (from.Async || !own.Async)
}

// Source says where a hook of [Read] comes from: its event and its matcher. Matchers of one
// command are joined, unless they have different conditions. It returns nil if the
// declaration is not a hook of a file.
func Source(d *declare.Declaration) []declare.Dialect {
	p, ok := d.Protocol.(*proto)
	if !ok {
		return nil
	}
	var all []declare.Dialect
	for _, one := range p.when.any {
		from := declare.Dialect{Agent: p.Vendor, Event: p.event.Name, Matcher: one.matcher.text, Async: d.Detached || p.rewake, Rewake: p.rewake, RewakeMessage: p.rewakeMessage}
		if one.rule != nil {
			from.If = one.rule.text
		}
		all = append(all, from)
	}
	return grouped(all, !p.AlwaysRegexp)
}

// Handlers returns how many hooks of the files a hook of [Read] stands for.
func Handlers(d *declare.Declaration) int {
	if p, ok := d.Protocol.(*proto); ok {
		return len(p.when.any)
	}
	return 0
}

// plainMatcher matches a matcher that is a list of names.
var plainMatcher = lazyregexp.New(`^[A-Za-z0-9_|, -]+$`)

// grouped joins the matchers of one command, so that the command runs once for a call.
// Matchers with different conditions stay apart.
func grouped(sources []declare.Dialect, lists bool) []declare.Dialect {
	var groups []declare.Dialect
next:
	for _, one := range sources {
		if one.Matcher == "*" {
			one.Matcher = ""
		}
		for i := range groups {
			if g := &groups[i]; g.If == one.If {
				g.Matcher = joined(g.Matcher, one.Matcher, lists)
				continue next
			}
		}
		groups = append(groups, one)
	}
	return groups
}

// joined returns a matcher that matches what one of two matchers matches.
func joined(a, b string, lists bool) string {
	if a == "" || b == "" {
		return ""
	}
	if lists && plainMatcher.MatchString(a) && plainMatcher.MatchString(b) {
		return a + "|" + b
	}
	pattern := func(m string) string {
		if !lists || !plainMatcher.MatchString(m) {
			return "(?:" + m + ")"
		}
		names := strings.FieldsFunc(m, func(c rune) bool { return c == '|' || c == ',' })
		for i := range names {
			names[i] = strings.TrimSpace(names[i])
		}
		return "^(?:" + strings.Join(names, "|") + ")$"
	}
	return pattern(a) + "|" + pattern(b)
}
