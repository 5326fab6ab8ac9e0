package permit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Explanation is the floor's decision about a call, with its reasons.
type Explanation struct {
	Tool string `json:"tool"`
	Mode Mode   `json:"mode"`
	// Zone is the highest zone of the findings.
	Zone Zone `json:"zone"`
	// Decision is pass (the zero value), ask or deny.
	Decision belay.ToolDecision `json:"decision"`
	// By names what decided: a guard, a protection, a rule or a zone. If Decision is ask,
	// By names everything that asks, separated by commas.
	By string `json:"by,omitempty"`
	// Reason is the reason for the decision. It may quote the input.
	Reason string `json:"reason,omitempty"`
	// Findings are the things that the call does, as far as the floor can determine.
	Findings []Finding `json:"findings"`
	// Opinions are the decisions of guards, protections, rules and the mode. The first
	// opinion is the one that decided.
	Opinions []Opinion `json:"opinions,omitempty"`

	asked coverage // the findings that rules ask about
}

// Kind is the kind of thing that a finding is about.
type Kind string

// The kinds of findings.
const (
	KindTool    Kind = "tool"    // the tool itself
	KindCommand Kind = "command" // a program that a command line runs
	KindRead    Kind = "read"    // a path that the call reads
	KindWrite   Kind = "write"   // a path that the call changes
	KindURL     Kind = "url"     // an address that the call connects to
	KindUnknown Kind = "unknown" // something that the floor cannot determine
)

// Finding is one thing that a call does.
type Finding struct {
	Kind Kind `json:"kind"`
	// Subject is the command, path or URL. A path inside the project is relative to the
	// project.
	Subject string `json:"subject"`
	Zone    Zone   `json:"zone"`
	// Why is the reason for the zone.
	Why string `json:"why,omitempty"`
	// Protection is the id of the protection that applies, or empty.
	Protection string `json:"protection,omitempty"`
	// Line is the line number in the text of a command, from 1. It is 0 for other calls.
	Line int `json:"line,omitempty"`
	// Raised is set if Zone was raised by one because commands run without a sandbox.
	Raised bool `json:"raised,omitempty"`

	words  []string // words of the command, for rules; nil if a word is unknown
	trust  bool     // the command is a program of the system
	opaque bool     // its effects are unknown
	code   bool     // it runs code that Belay has not read
	owner  int      // index of the command's own finding, plus 1; 0 if there is no command
	beside bool     // it runs in the background or in a pipe
	does   effect   // what the call does to the path
	tree   string   // directory whose whole contents may be affected, in the form of Subject; or empty
	apart  bool     // the command runs outside the project directory, or with variables that the command line sets
	fed    bool     // the command reads from a pipe or a redirection
}

// Opinion is the decision of a guard, a protection, a rule or the mode about a call.
type Opinion struct {
	By       string             `json:"by"`
	Decision belay.ToolDecision `json:"decision"`
	// Allows is set for the opinion of an allow rule. Its Decision is pass.
	Allows bool   `json:"allows,omitempty"`
	About  string `json:"about,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Where is the file and line of a rule. It is not part of By, so that an approval
	// stays valid when the rule moves to another line.
	Where string `json:"where,omitempty"`
}

// Asks returns the text for the person who is asked: why the call needs approval, and how
// to avoid the question. For other decisions it returns the reason.
func (e *Explanation) Asks() string {
	if e.Decision != belay.ToolAsk || e.Reason == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.way()
}

// way returns how to avoid the question.
func (e *Explanation) way() string {
	for _, o := range e.Opinions {
		id, ok := strings.CutPrefix(o.By, "protection ")
		switch {
		case o.Decision != belay.ToolAsk || !ok:
		case id == shellOutside:
			return "to avoid this question, add the directory to permit.roots"
		default:
			return "to avoid this question, relax this protection in your settings: " + id
		}
	}
	for _, o := range e.Opinions {
		if o.Decision == belay.ToolAsk && strings.HasPrefix(o.By, "rule ") {
			return "to avoid this question, remove the rule"
		}
	}
	for i := range e.Findings {
		if f := &e.Findings[i]; f.Zone == ZoneMachine && (f.opaque || f.Kind == KindUnknown) {
			return "to avoid this question, write the command without unknown parts"
		}
	}
	return "to avoid this question, add a rule that allows this call"
}

// Network reports whether the call uses the network, or may use it because a part of the
// call is unknown.
func (e *Explanation) Network() bool {
	return slices.ContainsFunc(e.Findings, func(f Finding) bool {
		return f.Zone >= ZoneNetwork && f.Kind != KindRead && f.Kind != KindWrite
	})
}

// Agent reports whether the call may use the ssh agent, which gives access to the user's
// keys. It returns true if git, ssh, scp, sftp or rsync connects to another machine, and
// nothing in the call is unknown or runs other code.
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
		case f.words == nil && f.Protection != "": // a finding of invoked.protect; its command has another finding
		default:
			return false
		}
	}
	return reaches
}

// Outside reports whether the call certainly changes the machine outside the project, so
// that a sandbox would stop it. held reports whether the sandbox allows changes to an
// absolute path. A nil held means that the sandbox allows none.
//
// If any part of the call is unknown, or runs code that Belay has not read, Outside
// returns false. Such a call stays in the sandbox, even if a person approves it.
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

// Reach describes the zone of the call in words.
func (e *Explanation) Reach() string {
	for i := range e.Findings {
		if f := &e.Findings[i]; f.Zone == e.Zone && f.Raised {
			return fmt.Sprintf("zone %d %s: %s; %s", e.Zone-1, e.Zone-1, (e.Zone - 1).Means(), oneHigher)
		}
	}
	return fmt.Sprintf("zone %d %s: %s", e.Zone, e.Zone, e.Zone.Means())
}

// oneHigher explains a raised zone.
const oneHigher = "one higher because commands run without a sandbox"

// act describes a finding as part of a sentence: a command alone, or a path with a verb
// such as writes.
func (found *Finding) act() string {
	if found.Kind != KindRead && found.Kind != KindWrite {
		return shown(found.Subject)
	}
	return [...]string{reads: "reads ", changes: "writes ", rewrites: "changes ", removes: "removes "}[found.does] + shown(found.Subject)
}

// String returns the explanation as text of several lines.
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

// joined merges the findings of each kind and subject into one line. A command often has
// several findings, such as its own zone and a protection.
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

func spoken(d belay.ToolDecision) string {
	if d == belay.ToolPass {
		return "pass"
	}
	return string(d)
}

// mostShown is the number of characters of a subject that messages show.
const mostShown = 160

// shown returns a subject on one line, shortened if it is long.
func shown(subject string) string {
	if strings.ContainsFunc(subject, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		subject = fmt.Sprintf("%q", subject)
	}
	if runes := []rune(subject); len(runes) > mostShown {
		subject = string(runes[:mostShown]) + "…"
	}
	return subject
}
