package permit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// consider applies guards, protections, rules and the mode, in this order. The most
// severe decision wins. Of equally severe decisions, the first wins.
func (f *Floor) consider(ctx context.Context, e *Explanation, input json.RawMessage, fields []member) {
	for i := range f.guards {
		if why := f.guards[i].judge(ctx, f, e, input); why != "" {
			e.say(Opinion{By: "guard " + f.guards[i].ID, Decision: belay.ToolDeny, Reason: why})
		}
	}
	for i := range e.Findings {
		f.protect(e, &e.Findings[i])
	}
	var allowed coverage
	if f.rules != nil {
		allowed, e.asked = f.rules.judge(f, e, fields)
	}
	if f.mode.Ask == ZoneSafe { // a mode that only reads ignores rules that allow
		allowed = coverage{}
	}
	f.byMode(e, &allowed)
	if e.Decision == belay.ToolAsk {
		e.By = e.askers()
	}
}

// outsideSandbox is one of the names that askers returns if the command would run outside
// the sandbox.
const outsideSandbox = "outside the sandbox"

// askers returns the names of everything that asks: protections, rules and zones. An
// approval for several calls is valid only for these names. So approval of a protection's
// question does not also answer a zone's question.
func (e *Explanation) askers() string {
	var names []string
	for _, o := range e.Opinions {
		if o.Decision == belay.ToolAsk && !slices.Contains(names, o.By) {
			names = append(names, o.By)
		}
	}
	slices.Sort(names)
	if e.Tool == shellTool && e.Outside(nil) { // approval of a command in the sandbox does not cover a command outside it
		names = append(names, outsideSandbox)
	}
	return strings.Join(names, ", ")
}

// say adds an opinion. An opinion that is more severe than all earlier ones becomes the
// decision.
func (e *Explanation) say(o Opinion) {
	if severity(o.Decision) > severity(e.Decision) {
		e.Decision, e.By, e.Reason = o.Decision, o.By, o.Reason
		e.Opinions = append([]Opinion{o}, e.Opinions...)
		return
	}
	e.Opinions = append(e.Opinions, o)
}

func severity(d belay.ToolDecision) int {
	switch d {
	case belay.ToolPass:
		return 0
	case belay.ToolAsk:
		return 1
	default:
		return 2
	}
}

// protect denies a finding in zone 6. It also applies the protection of a finding, if
// there is one.
func (f *Floor) protect(e *Explanation, found *Finding) {
	if found.Zone >= ZoneNever {
		e.say(Opinion{
			By: "zone 6", Decision: belay.ToolDeny, About: found.Subject,
			Reason: fmt.Sprintf("%s: %s; Belay never runs this, even with approval", shown(found.Subject), found.Why),
		})
		return
	}
	if found.Protection == "" || f.relaxed[found.Protection] {
		return
	}
	e.say(Opinion{
		By: "protection " + found.Protection, Decision: f.holds(found.Protection), About: found.Subject,
		Reason: fmt.Sprintf("%s: %s", shown(found.Subject), found.Why),
	})
}

// byMode applies the mode to findings that no rule allows.
func (f *Floor) byMode(e *Explanation, allowed *coverage) {
	worst := -1
	for i := range e.Findings {
		if found := &e.Findings[i]; found.Zone > f.mode.Auto && found.Zone < ZoneNever && !allowed.covers(i) && (worst < 0 || found.Zone > e.Findings[worst].Zone) {
			worst = i
		}
	}
	if worst < 0 {
		return
	}
	found := &e.Findings[worst]
	o := Opinion{By: fmt.Sprintf("zone %d", found.Zone), Decision: belay.ToolAsk, About: found.Subject}
	zone := found.Zone
	if found.Raised {
		zone-- // show the zone before the raise: the name of the raised zone would be misleading
	}
	verb := " is"
	if found.Kind == KindRead || found.Kind == KindWrite {
		verb = ":" // as in "writes x: zone 1"
	}
	o.Reason = fmt.Sprintf("%s%s zone %d %s", found.act(), verb, zone, zone)
	if found.Why != "" {
		o.Reason += " (" + found.Why + ")"
	}
	if found.Raised {
		o.Reason += ", " + oneHigher
	}
	if found.Zone > f.mode.Ask {
		o.Decision = belay.ToolDeny
		o.Reason += fmt.Sprintf(", and %s mode allows nothing above zone %d", f.mode.Name, f.mode.Ask)
	} else {
		o.Reason += fmt.Sprintf(", and %s mode asks above zone %d", f.mode.Name, f.mode.Auto)
	}
	e.say(o)
}
