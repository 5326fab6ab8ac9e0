package permit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Explanation says what the floor decides about a call, and why.
type Explanation struct {
	Tool string `json:"tool"`
	Mode Mode   `json:"mode"`
	// Zone is the highest zone of the findings.
	Zone Zone `json:"zone"`
	// Decision is pass (the zero value), ask or deny.
	Decision belay.ToolDecision `json:"decision"`
	// By names the guard, protection, rule or mode that decided.
	By string `json:"by,omitempty"`
	// Reason says why, and may quote the input.
	Reason string `json:"reason,omitempty"`
	// Findings are what the call does, as far as it could be told.
	Findings []Finding `json:"findings"`
	// Opinions are what guards, protections, rules and the mode said, the decisive
	// one first.
	Opinions []Opinion `json:"opinions,omitempty"`

	asked coverage // what rules ask about
}

// Kind says what sort of thing a finding is about.
type Kind string

// The kinds of findings.
const (
	KindTool    Kind = "tool"    // a tool as such
	KindCommand Kind = "command" // a program that a command line runs
	KindRead    Kind = "read"    // a path that is read
	KindWrite   Kind = "write"   // a path that is changed
	KindURL     Kind = "url"     // an address that is reached
	KindUnknown Kind = "unknown" // what could not be resolved
)

// Finding is one thing that a call does.
type Finding struct {
	Kind Kind `json:"kind"`
	// Subject is the command, the path or the URL. Paths inside the project are
	// relative to it.
	Subject string `json:"subject"`
	Zone    Zone   `json:"zone"`
	// Why says how it comes to its zone.
	Why string `json:"why,omitempty"`
	// Protection is the id of the protection that holds it, if one does.
	Protection string `json:"protection,omitempty"`
	// Line is the line of the command that it is on, from 1; 0 outside commands.
	Line int `json:"line,omitempty"`
	// Raised says that its zone is one higher than what it does, because commands run
	// without a sandbox.
	Raised bool `json:"raised,omitempty"`

	words  []string // of a command, for rules; nil if one of them is not known
	trust  bool     // the command's name means a program of the system
	opaque bool     // it is in its zone because what it does is unknown
	code   bool     // it runs code that was not read
	owner  int      // the finding of the command that does it, from 1; 0 for none
	beside bool     // it runs beside the rest of the line
	does   effect   // to a path
	tree   string   // the directory that it may reach all of, as subjects are written; nothing if there is none
	apart  bool     // the command runs in another directory than the project, or with variables of the line's own
	fed    bool     // the command reads what a pipe or a redirection hands to it
}

// Opinion is what a guard, a protection, a rule or the mode says about a call.
type Opinion struct {
	By       string             `json:"by"`
	Decision belay.ToolDecision `json:"decision"`
	// Allows says that a rule allows what the mode would ask about.
	Allows bool   `json:"allows,omitempty"`
	About  string `json:"about,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Where is the file and line of a rule. It is no part of By: a yes for a rule holds
	// when a line is added above it.
	Where string `json:"where,omitempty"`
}

// Asks is the reason for people who are asked: why the call asks, and what would make it
// not ask.
func (e *Explanation) Asks() string {
	if e.Decision != belay.ToolAsk || e.Reason == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.way()
}

// way says what would make a call that asks not ask.
func (e *Explanation) way() string {
	for _, o := range e.Opinions {
		id, ok := strings.CutPrefix(o.By, "protection ")
		switch {
		case o.Decision != belay.ToolAsk || !ok:
		case id == shellOutside:
			return "it would not ask about a directory that permit.roots names"
		default:
			return "it would not ask if the user's settings relaxed " + id
		}
	}
	for _, o := range e.Opinions {
		if o.Decision == belay.ToolAsk && strings.HasPrefix(o.By, "rule ") {
			return "it would not ask without this rule"
		}
	}
	for i := range e.Findings {
		if f := &e.Findings[i]; f.Zone == ZoneMachine && (f.opaque || f.Kind == KindUnknown) {
			return "it would not ask if the command said plainly what it does"
		}
	}
	return "to stop asking, add a rule that allows it"
}

// Network reports whether the call was understood to use the network, or might: what
// cannot be determined may need it.
func (e *Explanation) Network() bool {
	return slices.ContainsFunc(e.Findings, func(f Finding) bool {
		return f.Zone >= ZoneNetwork && f.Kind != KindRead && f.Kind != KindWrite
	})
}

// Agent reports whether the call may use the agent that holds the user's keys for ssh: git
// or ssh reach another machine, and nothing in the call runs code or is unknown.
func (e *Explanation) Agent() bool {
	reaches := false
	for i := range e.Findings {
		f := &e.Findings[i]
		switch {
		case f.opaque, f.code, f.Kind == KindUnknown, f.Kind == KindTool:
			return false
		case f.Kind != KindCommand || f.Zone < ZoneNetwork:
		case f.trust && len(f.words) > 0 && oneOf(base(f.words[0]), "git ssh scp sftp rsync"):
			reaches = true
		case f.words == nil && f.Protection != "": // it says more about another finding
		default:
			return false
		}
	}
	return reaches
}

// Outside reports whether the call was understood to change the machine beyond the
// project, where a sandbox would not let it. held says which paths the sandbox lets
// be changed, all of them absolute; nil says that there are none.
//
// A call is understood as a whole or it is not: with anything in it that cannot be
// determined, or that runs code which nobody has read, it is tried where it can do no harm,
// whoever approves it and whatever else it does.
func (e *Explanation) Outside(held func(path string) bool) bool {
	outside := false
	for i := range e.Findings {
		f := &e.Findings[i]
		switch {
		case f.opaque, f.code, f.Kind == KindUnknown:
			return false
		case f.Zone < ZoneMachine:
		case f.Kind == KindWrite && held != nil && held(f.Subject):
		case f.Kind == KindWrite, f.Kind == KindCommand:
			outside = true
		}
	}
	return outside
}

// Reach says in words how far the call reaches.
func (e *Explanation) Reach() string {
	for i := range e.Findings {
		if f := &e.Findings[i]; f.Zone == e.Zone && f.Raised {
			return fmt.Sprintf("zone %d %s: %s; %s", e.Zone-1, e.Zone-1, (e.Zone - 1).Means(), oneHigher)
		}
	}
	return fmt.Sprintf("zone %d %s: %s", e.Zone, e.Zone, e.Zone.Means())
}

// oneHigher says why a zone is what it is.
const oneHigher = "one higher because commands run without a sandbox"

// act is what a finding is about as part of a sentence: a command by itself, a path
// with what is done to it.
func (found *Finding) act() string {
	if found.Kind != KindRead && found.Kind != KindWrite {
		return shown(found.Subject)
	}
	return [...]string{reads: "reads ", changes: "writes ", rewrites: "changes ", removes: "removes "}[found.does] + shown(found.Subject)
}

// String is the explanation for people, several lines long.
func (e *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s in %s mode, zone %d %s\n", strings.ToUpper(spoken(e.Decision)), e.Tool, e.Mode.Name, e.Zone, e.Zone)
	if e.Reason != "" {
		fmt.Fprintf(&b, "  %s: %s\n", e.By, e.Reason)
	}
	lines := e.joined()
	for _, line := range lines {
		fmt.Fprintf(&b, "  zone %d  %-7s %s", line.zone, line.kind, shown(line.subject))
		if len(line.whys) > 0 {
			fmt.Fprintf(&b, "  (%s)", strings.Join(line.whys, "; "))
		}
		for _, id := range line.protections {
			fmt.Fprintf(&b, "  [%s]", id)
		}
		b.WriteByte('\n')
	}
	for _, o := range e.Opinions {
		fmt.Fprintf(&b, "  %-5s by %s", o.word(), o.By)
		if o.Where != "" {
			fmt.Fprintf(&b, " (%s)", o.Where)
		}
		if o.About != "" && (len(lines) != 1 || o.About != lines[0].subject) {
			fmt.Fprintf(&b, ": %s", shown(o.About))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// findingLine is one line of an explanation: all findings of one kind about one subject.
type findingLine struct {
	kind              Kind
	subject           string
	zone              Zone // the highest one
	whys, protections []string
}

// joined returns the findings with one line for each kind and subject. A command often has
// several findings, such as its own zone and a protection that it touches.
func (e *Explanation) joined() []*findingLine {
	var lines []*findingLine
	add := func(list []string, text string) []string {
		if text == "" || slices.Contains(list, text) {
			return list
		}
		return append(list, text)
	}
	for i := range e.Findings {
		f := &e.Findings[i]
		at := slices.IndexFunc(lines, func(l *findingLine) bool { return l.kind == f.Kind && l.subject == f.Subject })
		if at < 0 {
			at = len(lines)
			lines = append(lines, &findingLine{kind: f.Kind, subject: f.Subject})
		}
		line := lines[at]
		line.zone = max(line.zone, f.Zone)
		line.whys = add(line.whys, f.Why)
		if f.Raised {
			line.whys = add(line.whys, oneHigher)
		}
		line.protections = add(line.protections, f.Protection)
	}
	return lines
}

func (o *Opinion) word() string {
	if o.Allows {
		return "allow"
	}
	return spoken(o.Decision)
}

// spoken is a decision as it is written.
func spoken(d belay.ToolDecision) string {
	if d == belay.ToolPass {
		return "pass"
	}
	return string(d)
}

// mostShown is how many characters of a subject are shown.
const mostShown = 160

// shown is a subject on one line.
func shown(subject string) string {
	if strings.ContainsFunc(subject, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		subject = fmt.Sprintf("%q", subject)
	}
	if runes := []rune(subject); len(runes) > mostShown {
		subject = string(runes[:mostShown]) + "…"
	}
	return subject
}
