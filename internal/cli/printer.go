package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/visible"
)

// printer shows the events of a turn: the model's text on standard output, everything else
// on standard error. On a terminal it streams the text. Otherwise it prints each message
// after the message is stored, so that the text of a failed attempt is never printed.
type printer struct {
	a     *app
	order chat.Order // the order of the questions to the user

	mu       sync.Mutex // guards the fields below; the spinner and the approver also write
	midLine  bool       // the last text did not end with a line break
	spin     *spinner
	calls    map[string]*callSeen
	running  []string        // ids of the running calls, in the order they started
	fault    error           // the first error of writing to standard output
	streamed bool            // text of this step is already on the terminal
	warned   map[string]bool // warnings that were already shown in full
	failures map[string]bool // diagnostics of hooks that were already shown
}

// callSeen is a call that has no result yet.
type callSeen struct {
	tool, about string
	since       time.Time
}

func newPrinter(a *app) *printer {
	p := &printer{a: a, calls: make(map[string]*callSeen), warned: make(map[string]bool), failures: make(map[string]bool)}
	p.spin = newSpinner(p)
	return p
}

func (p *printer) tell(e *belay.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Depth > 0 && e.Subagent == nil {
		p.below(e)
		return
	}
	switch e.Kind { //nolint:exhaustive // the user has just typed what turn_steered repeats
	case belay.EventTextDelta:
		if p.a.outTerminal {
			p.text(e.Text)
			p.streamed = true
		}
	case belay.EventThinkingDelta:
		p.spin.say("thinking")
	case belay.EventModelResponse:
		p.response(e.Message)
	case belay.EventToolUse:
		p.called(e.Call, e.Time)
	case belay.EventToolUseResult:
		p.answered(e.Call, e.Result, e.Time)
	case belay.EventApprovalDecided:
		p.decided(e, e.Call)
	case belay.EventToolProgress:
		if e.Call != nil {
			p.spin.say(oneLine(e.Call.Tool + ": " + lastLine(e.Text)))
		}
	case belay.EventHookRun:
		p.hookRun(e.HookRun)
	case belay.EventHookOutput:
		p.hookOutput("", e)
	case belay.EventHookFailed:
		p.hookFailed("", e)
	case belay.EventTurnContinued:
		p.goesOn("", e)
	case belay.EventCompactionStart:
		p.spin.say("summarizing the conversation")
	case belay.EventCompactionEnd:
		p.line(p.a.onErr.dim("the conversation was summarized: the store keeps the older messages, and the model sees only the summary"))
	case belay.EventSubagentInvoked:
		p.line("  " + p.a.onErr.cyan("subagent") + " " + oneLine(e.Text) + ": " + p.a.onErr.dim(short(oneLine(e.Subagent.Prompt), max(p.a.width-20-len(e.Text), 20))))
	case belay.EventSubagentCompleted:
		if e.Subagent.Status != belay.ChildSuccess {
			p.line("  " + p.a.onErr.cyan("subagent") + " " + oneLine(e.Text) + ": " + p.a.onErr.yellow(e.Subagent.Status) + " " + oneLine(e.Subagent.Message))
		}
	case belay.EventError:
		if e.Retry {
			p.streamed = false
			p.line(p.a.onErr.yellow("retrying: ") + oneLine(e.Text))
		}
	case belay.EventTurnStart, belay.EventTurnEnd, belay.EventTokenConsumption, belay.EventApprovalRequested,
		belay.EventHookInvoked, belay.EventSkillInvoked:
	}
}

// below shows an event of a subagent: its calls, the decisions about them, and the messages
// of hooks. It does not show the subagent's text, because that text is for the parent
// agent.
func (p *printer) below(e *belay.Event) {
	switch {
	case e.Kind == belay.EventHookOutput:
		p.hookOutput(oneLine(e.Agent)+": ", e)
		return
	case e.Kind == belay.EventHookFailed:
		p.hookFailed(oneLine(e.Agent)+": ", e)
		return
	case e.Kind == belay.EventTurnContinued:
		p.goesOn(oneLine(e.Agent)+": ", e)
		return
	case e.Call == nil:
		return
	}
	part := *e.Call
	part.ID, part.Tool = e.Run+"/"+part.ID, oneLine(e.Agent)+": "+part.Tool
	switch e.Kind { //nolint:exhaustive // the others are not shown
	case belay.EventToolUse:
		p.called(&part, e.Time)
	case belay.EventToolUseResult:
		p.answered(&part, e.Result, e.Time)
	case belay.EventApprovalDecided:
		p.decided(e, &part)
	}
}

// text writes to standard output.
func (p *printer) text(text string) {
	if p.a.outTerminal {
		text = visible.Clean(text)
	}
	if text == "" {
		return
	}
	p.spin.clear()
	if _, err := io.WriteString(p.a.out, text); err != nil && p.fault == nil {
		p.fault = err
	}
	p.midLine = !strings.HasSuffix(text, "\n")
}

// response ends the text of a step. It prints the text if it was not streamed.
func (p *printer) response(m *belay.Message) {
	if !p.streamed {
		if text := m.Text(); text != "" {
			p.text(text)
		}
	}
	p.streamed = false
	p.endLine()
}

func (p *printer) endLine() {
	if p.midLine {
		p.text("\n")
	}
}

// line writes a line to standard error.
func (p *printer) line(text string) {
	p.endLine()
	p.spin.clear()
	p.a.remarkf("%s", text)
}

func (p *printer) called(c *belay.CallPart, at time.Time) {
	p.calls[c.ID] = &callSeen{c.Tool, ran(c), at}
	p.running = append(p.running, c.ID)
	p.spinCalls()
}

// ran describes a call by the input that it ran with. Hooks may have changed the input.
func ran(c *belay.CallPart) string {
	switch {
	case c.Final == nil:
		return about(c.Input)
	case len(c.RewrittenBy) == 0: // only defaults were added
		return about(c.Final)
	}
	return about(c.Final) + " (rewritten by " + oneLine(strings.Join(c.RewrittenBy, ", ")) + ")"
}

func (p *printer) spinCalls() {
	switch len(p.running) {
	case 0:
		p.spin.say("waiting for the model")
	case 1:
		c := p.calls[p.running[0]]
		p.spin.say(strings.TrimSpace(c.tool + " " + c.about))
	default:
		p.spin.say(fmt.Sprintf("%d calls", len(p.running)))
	}
}

func (p *printer) answered(part *belay.CallPart, r *belay.Result, at time.Time) {
	c := p.calls[part.ID]
	if c == nil { // the call was made before the turn was resumed
		c = &callSeen{part.Tool, ran(part), time.Time{}}
	}
	delete(p.calls, part.ID)
	for i, id := range p.running {
		if id == part.ID {
			p.running = append(p.running[:i:i], p.running[i+1:]...)
			break
		}
	}
	s := p.a.onErr
	lasted := ""
	if !c.since.IsZero() {
		lasted = took(at.Sub(c.since))
	}
	outcome := ""
	var output []string
	if r.IsError {
		word, dress := string(r.Class), s.red
		ran := r.Class != belay.ClassDenied && r.Class != belay.ClassAborted
		said := short(oneLine(r.Text), p.a.width)
		if !ran {
			dress = s.yellow
		}
		if r.Class == belay.ClassDenied { // show the reason without the advice for the model
			why, _, _ := strings.Cut(r.Text, "\n")
			said = short(oneLine(why), 4*p.a.width)
		}
		outcome = "  " + dress(word+": ") + said
		if all := strings.Split(strings.TrimSpace(visible.Clean(r.Text)), "\n"); ran && c.tool == "shell" && len(all) > 1 {
			outcome, output = "  "+dress(word), all[max(len(all)-lastLines, 0):]
		}
	}
	about := short(c.about, max(p.a.width-len(c.tool)-14, 20))
	p.line("  " + s.cyan(c.tool) + " " + strings.TrimRight(about+"  "+s.dim(lasted), " ") + outcome)
	for _, line := range output {
		p.line("    " + s.dim(short(line, max(p.a.width-4, narrowest))))
	}
	p.spinCalls()
}

// lastLines is how many lines of output are shown: the last lines of a failed command, or
// the lines of a hook's output after its first line.
const lastLines = 10

func (p *printer) decided(e *belay.Event, c *belay.CallPart) {
	a := e.Approval
	if p.calls[c.ID] == nil { // the turn was resumed, and the call is not shown yet
		p.calls[c.ID] = &callSeen{tool: c.Tool, about: ran(c)}
	}
	for _, seen := range p.calls {
		seen.since = e.Time // do not count the time that the user needed to answer
	}
	d := a.Decided
	if d == nil {
		return
	}
	word := p.a.onErr.yellow("refused")
	if d.Allow {
		word = p.a.onErr.green("allowed") + reaching(d.Scope)
	}
	if settledAs(a, d.Allow) == "answered" {
		word = p.a.onErr.green("answered")
	}
	line := fmt.Sprintf("  %s %s by %s", p.a.onErr.cyan(c.Tool), word, oneLine(d.By))
	if d.Reason != "" {
		line += ": " + oneLine(d.Reason)
	}
	if e.Text != "" {
		line += " (" + p.a.onErr.yellow(oneLine(e.Text)) + ")"
	}
	p.line(line)
}

// reaching returns the scope of an approval, or "" if the approval covers only one call.
func reaching(s belay.ApprovalScope) string {
	switch s.Kind {
	case belay.ScopeSession:
		return " in this session"
	case belay.ScopePattern:
		return " like " + oneLine(s.Pattern)
	default:
		return ""
	}
}

func (p *printer) hookRun(r *hook.Run) {
	s := p.a.onErr
	line := fmt.Sprintf("  %s %s at %s  %s", s.cyan("hook"), r.Subscription, r.Phase, r.State)
	if r.Severity > hook.SeverityPass {
		line += " " + s.yellow(r.Severity.String())
	}
	if r.Class != "" {
		line += " " + s.red(string(r.Class))
	}
	p.line(line + "  " + s.dim(took(time.Duration(r.Latency))))
}

// hookOutput shows the first lines of a hook's output.
func (p *printer) hookOutput(agent string, e *belay.Event) {
	s := p.a.onErr
	all := strings.Split(strings.TrimSpace(visible.Clean(e.Text)), "\n")
	p.line("  " + s.cyan("hook") + " " + agent + oneLine(e.By) + ": " + s.dim(all[0]))
	rest := all[1:]
	for _, line := range rest[:min(len(rest), lastLines)] {
		p.line("    " + s.dim(line))
	}
	if more := len(rest) - lastLines; more > 0 {
		p.line("    " + s.dim(fmt.Sprintf("… and %s more", visible.Counted(more, "line"))))
	}
}

// hookFailed shows that a hook failed, and why.
func (p *printer) hookFailed(agent string, e *belay.Event) {
	d := e.Diagnostic
	if d == nil {
		return
	}
	if e.Depth == 0 {
		p.failures[d.String()] = true
	}
	p.warn(visible.HookFailure(agent+e.By, d.Phase, d.Message, e.Text))
}

// warn shows a warning. If the same warning was shown before, it shows only the first line.
func (p *printer) warn(text string) {
	s := p.a.onErr
	lines := strings.Split(visible.Clean(text), "\n")
	p.line("  " + s.yellow("warning:") + " " + lines[0])
	if p.warned[text] {
		return
	}
	p.warned[text] = true
	for _, line := range lines[1:] {
		p.line("    " + s.dim(line))
	}
}

// notice shows a notice.
func (p *printer) notice(n notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.good {
		p.line("  " + visible.Clean(n.text))
		return
	}
	p.warn(n.text)
}

// shown reports whether a diagnostic was already shown during the turn.
func (p *printer) shown(d *hook.Diagnostic) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures[d.String()]
}

// goesOn shows which hook made the turn continue, and why.
func (p *printer) goesOn(agent string, e *belay.Event) {
	p.line("  " + p.a.onErr.yellow("continues:") + " " + agent + oneLine(e.By) + ": " + oneLine(e.Text))
}

// asking calls f, which asks the user. Nothing else is printed until f returns.
func (p *printer) asking(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLine()
	p.spin.clear()
	f()
}

// failed returns the first error of writing to standard output.
func (p *printer) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// lastLine returns the last line of a text that is not blank.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	return text[strings.LastIndexAny(text, "\r\n")+1:]
}
