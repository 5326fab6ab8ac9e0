package permit

import (
	"path"
	"slices"
	"strings"
)

// belayCommands judges Belay's own command.
func belayCommands(t table) {
	t.add("belay", func(c *invoked) { c.belay(c.args) })
}

// belay judges a run of the command belay. An agent may read Belay's state. It must not
// approve, trust or change settings. So a protection applies to calls that are not known
// to be harmless. The position of a word matters: help may also be the value of an
// option.
func (c *invoked) belay(args []arg) {
	if slices.ContainsFunc(args, func(a arg) bool { return !a.known || a.pattern || a.pipe }) {
		c.unknown("cannot determine the arguments of belay")
		c.protect(selfCommand, "cannot determine the arguments of belay")
		return
	}
	if slices.ContainsFunc(args, func(a arg) bool { name, _, _ := strings.Cut(a.text, "="); return name == "--server" }) {
		c.zone(ZoneMachine, "uses a server of Belay")
		c.protect(selfCommand, "an agent must not use a server of Belay")
		return
	}
	args = c.belayOptions(args)
	verb, sub := word(args, 0), word(args, 1)
	asks := oneOf(sub, "-h --help") && len(args) == 2
	switch {
	case len(args) == 0, len(args) == 1 && oneOf(verb, "-h --help -v --version"):
	case oneOf(verb, "version help completion demo doctor runs show check"):
	case verb == "sessions" && !slices.ContainsFunc(args[1:], func(a arg) bool { return oneOf(a.text, "rename label delete") }):
	case verb == "config" && len(args) <= 2:
	case verb == "models":
		if len(args) > 1 {
			c.zone(ZoneNetwork, "queries the providers of models")
		}
	case verb == "hooks" && (asks || oneOf(sub, "phases schema codes list plan")), verb == "approvals" && (asks || oneOf(sub, "list show")),
		verb == "permit" && (asks || oneOf(sub, "explain rules zones protections")), verb == "store" && (asks || oneOf(sub, "check export")),
		oneOf(verb, "approvals permit hooks store") && len(args) == 1:
	case oneOf(verb, "run chat resume fork"):
		c.zone(ZoneMachine, "starts another agent")
		if o := parseOptions(args, "*"); o.has("mode", "relax", "rule", "rules", "allow", "config", "trust", "yes", "y", "approve", "on-ask", "no-sandbox", "sandbox", "profile", "space", "mcp") {
			c.protect(selfCommand, "an agent must not start another agent with other rights")
		}
	default:
		c.zone(ZoneMachine, "controls Belay")
		c.protect(selfCommand, "an agent must not control the Belay that runs it")
	}
}

// belayOptions removes the known options before the verb.
func (c *invoked) belayOptions(args []arg) []arg {
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0].text, "=")
		switch {
		case args[0].text == "--debug":
			args = args[1:]
		case joined && oneOf(name, "--dir --store"):
			c.read(literal(value))
			args = args[1:]
		case oneOf(args[0].text, "-C --dir --store") && len(args) > 1:
			c.read(args[1])
			args = args[2:]
		default:
			return args
		}
	}
	return args
}

// isBelay reports whether a word names the Go source of Belay's own command.
func (c *invoked) isBelay(a arg) bool {
	if !a.known {
		return false
	}
	for _, s := range c.spots(a, reads) {
		if name := strings.TrimSuffix(path.Base(s.path), ".go"); name == "belay" || name == "main" && path.Base(path.Dir(s.path)) == "belay" {
			return true
		}
	}
	return false
}
