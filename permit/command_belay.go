package permit

import (
	"path"
	"strings"
)

// belayCommands are Belay's own.
func belayCommands(t table) {
	t.add("belay", func(c *invoked) { c.belay(c.args) })
}

// belay judges a call of Belay. An agent may look at what Belay knows. It may not
// approve, trust or reconfigure, and what is not known to be harmless might.
func (c *invoked) belay(args []arg) {
	o := parseOptions(args, "* dir= C= config= store= db= model= session= space= mode= tool= input= format= o= m= s=")
	verb, sub := word(o.rest, 0), word(o.rest, 1)
	known := true
	for _, a := range args {
		known = known && a.known
	}
	switch {
	case len(args) == 0, known && len(o.rest) == 0 && o.has("version", "help", "h", "v"):
	case known && o.has("help", "h"):
	case !known:
		c.unknown("it cannot be told what Belay is told")
		c.protect(selfCommand, "it cannot be told what Belay is told")
	case oneOf(verb, "version help completion demo doctor sessions runs show"), verb == "hooks" && oneOf(sub, "phases schema codes list show check explain"),
		verb == "approvals" && oneOf(sub, "list show"), verb == "permit" && oneOf(sub, "explain rules zones protections"), verb == "store" && oneOf(sub, "check export"),
		oneOf(verb, "approvals permit hooks store") && sub == "":
	case oneOf(verb, "run chat resume fork"):
		c.zone(ZoneMachine, "starts another agent")
		if o.has("mode", "relax", "rule", "rules", "allow", "config", "trust", "yes", "y", "approve", "on-ask", "no-sandbox", "sandbox", "profile", "space") {
			c.protect(selfCommand, "an agent does not start another with other rights")
		}
	default:
		c.zone(ZoneMachine, "steers Belay")
		c.protect(selfCommand, "Belay is not steered by an agent that it holds")
	}
}

// isBelay reports whether a word leads to the source of Belay's own command.
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
