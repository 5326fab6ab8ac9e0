package declare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/near"
)

// dialect reads the key dialect.
func (h *hookReading) dialect(v frontmatter.Value) {
	spoken := new(Dialect)
	h.d.Dialect = spoken
	agent := ""
	h.mapping(v, "dialect", map[string]func(frontmatter.Value){
		"agent":          func(v frontmatter.Value) { agent = h.text(v, "agent") },
		"event":          func(v frontmatter.Value) { spoken.Event = h.text(v, "event") },
		"matcher":        func(v frontmatter.Value) { spoken.Matcher = h.text(v, "matcher") },
		"if":             func(v frontmatter.Value) { spoken.If = h.text(v, "if") },
		"async":          func(v frontmatter.Value) { spoken.Async = h.boolean(v, "async") },
		"rewake":         func(v frontmatter.Value) { spoken.Rewake = h.boolean(v, "rewake") },
		"rewake_message": func(v frontmatter.Value) { spoken.RewakeMessage = h.text(v, "rewake_message") },
		"original":       func(v frontmatter.Value) { spoken.Original = h.text(v, "original") },
	})
	if v.Kind != frontmatter.Map {
		return // reported above
	}
	spoken.Agent = dialect.Vendor(agent)
	var agents, events []string
	for _, one := range dialect.Vendors() {
		if len(one.Events()) > 0 {
			agents = append(agents, string(one))
		}
	}
	if !slices.Contains(agents, agent) {
		h.faultf(v.Line, "dialect: there is no agent %q whose hooks Belay runs%s: there are %s", agent, near.Hint(agent, agents), strings.Join(agents, ", "))
		return
	}
	for _, e := range spoken.Agent.Events() {
		if e.Phase != "" {
			events = append(events, e.Name)
		}
	}
	event, known := spoken.Agent.Event(spoken.Event)
	switch {
	case !known || event.Phase == "":
		h.faultf(v.Line, "dialect: Belay runs no hooks of %s at %q%s: there are %s", spoken.Agent.Title(), spoken.Event, near.Hint(spoken.Event, events), strings.Join(events, ", "))
	case h.d.Phase != "" && event.Phase != h.d.Phase:
		h.faultf(v.Line, "dialect: %s is an event of the phase %s, and the hook names the phase %s: write phase: %s%s", spoken.Event, event.Phase, h.d.Phase, event.Phase, moved(event.Kind))
	}
}

// checkDialect checks the rules between the key dialect and other keys.
func (h *hookReading) checkDialect() {
	line := h.at["dialect"]
	if len(h.kinds) == 1 && h.d.Kind != hook.HandlerCommand {
		h.faultf(line, "dialect works only for commands: remove it, or use run or command")
	}
	if h.d.Options.Match.When != nil {
		h.faultf(line, "a hook with dialect has no when: use matcher and if below dialect, or a hook of Belay's own")
	}
	if err := h.d.waits(); err != nil {
		h.faultf(line, "%v", err)
	}
	if h.d.Dialect.Rewake && !h.d.Dialect.Async {
		h.faultf(line, "dialect: rewake works only with async: true")
	}
	if h.d.Dialect.RewakeMessage != "" && !h.d.Dialect.Rewake {
		h.faultf(line, "dialect: rewake_message works only with rewake: true")
	}
}

// waits returns an error if nothing waits for the hook, but its failure or its answer has to
// be known.
func (d *Declaration) waits() error {
	if d.Dialect == nil || !d.Dialect.Async {
		return nil
	}
	if d.Options.Failure != hook.Open && d.Options.Failure != (hook.Failure{}) {
		return fmt.Errorf("dialect: nothing waits for a hook with async, so failure: %s has no effect: remove failure, or async", d.Options.Failure)
	}
	if extra := d.Options.Capabilities &^ (hook.CanAudit | hook.NoCapability); extra != 0 {
		return fmt.Errorf("dialect: nothing waits for a hook with async, so it cannot use the capabilities %s: remove them, or async", strings.Join(extra.Names(), ", "))
	}
	return nil
}

// moved says that an event was at another phase before.
func moved(kind dialect.Kind) string {
	if kind != dialect.SubagentStop {
		return ""
	}
	return " (files of an older `belay import` have subagent.stop; there, execution: fire_and_record becomes async: true below dialect)"
}
