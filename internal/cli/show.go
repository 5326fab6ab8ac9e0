package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/telemetry/otlp"
	"github.com/spf13/cobra"
)

func (a *app) showCommand() *cobra.Command {
	var asJSON, full bool
	cmd := &cobra.Command{
		Use:   "show [SESSION]",
		Short: "Read the transcript of a session",
		Long: `Prints the messages of a session: what the user typed and how a hook rewrote it, injected messages, reminders from hooks,
summaries of compactions, calls with their inputs, and results. Long parts are shortened unless you add --full. Without
SESSION, prints the session that changed last. With --full, or if traces are sent or telemetry.trace_url is set, each turn has
the id or the address of its trace.`,
		Example: `  belay show
  belay show 20261115-k3f9x --full
  belay show --json | jq -r 'select(.kind == "reminder")'`,
		Args:              arguments(0, 1, "show takes one SESSION"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			word := ""
			if len(args) == 1 {
				word = args[0]
			}
			return a.records(cmd.Context(), func(r records) error {
				return a.showSession(cmd.Context(), r, word, full, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "print long parts in full")
	jsonFlag(cmd, &asJSON, "print one message per line as JSON")
	return cmd
}

func (a *app) showSession(ctx context.Context, r records, word string, full, asJSON bool) error {
	s, err := findRecord(ctx, r, word)
	if err != nil {
		return err
	}
	settings, err := a.settings()
	if err != nil {
		return err
	}
	t := &transcript{a: a, w: a.out, s: a.onOut, full: full, session: s.ID, held: s.Held}
	if full || settings.Telemetry.TraceURL != "" || otlp.IsSet(a.environ) {
		t.trace = func(turn string) string { return traceOf(settings, s.ID, turn) }
	}
	if !asJSON {
		t.head(&s)
	}
	for m, err := range r.Read(ctx, s.ID, 0) {
		if err != nil {
			return err
		}
		if asJSON {
			if err := a.printJSON(m); err != nil {
				return err
			}
			continue
		}
		if t.message(m); t.err != nil {
			return t.err
		}
	}
	if asJSON {
		return nil
	}
	if s.Turn != nil {
		calls, err := r.Calls(ctx, s.ID)
		if err != nil {
			return err
		}
		t.unanswered(calls)
	}
	queued, err := r.Queue(ctx, s.ID)
	if err != nil {
		return err
	}
	for i := range queued {
		t.linef("%s %s", t.s.yellow("waiting for a worker:"), visible.Clean(short(queued[i].Text, 500)))
	}
	t.foot(&s)
	return t.err
}

// transcript prints messages as text.
type transcript struct {
	a    *app
	w    io.Writer
	s    style
	full bool
	turn string
	err  error

	session string
	held    bool                     // a process has the session open
	trace   func(turn string) string // what leads to the trace of a turn; nil: it is not shown
}

func (t *transcript) linef(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
	}
}

func (t *transcript) head(s *api.Session) {
	line := fmt.Sprintf("session %s  %s", s.ID, s.State)
	if from := s.ForkedFrom; from != nil {
		line += fmt.Sprintf("  forked from %s at message %d", from.Session, from.Seq)
	}
	t.linef("%s", t.s.bold(line))
}

// whyEnded returns why the last turn ended. It returns "" if the turn ended normally, or if
// a turn is open.
func whyEnded(s *api.Session) string {
	e := s.Ending
	if e == nil || s.Turn != nil {
		return ""
	}
	line := oneLine(e.Why)
	if e.By != "" {
		line = strings.TrimSuffix(fmt.Sprintf("%s: %s", oneLine(e.By), line), ": ")
	}
	return visible.All(line)
}

func (t *transcript) foot(s *api.Session) {
	if why := whyEnded(s); why != "" {
		t.linef("%s %s", t.s.yellow(string(s.Reason)+":"), why)
	}
	u := s.Usage
	t.linef("\n%s", t.s.dim(fmt.Sprintf("%s · %s tokens in, %s out · %s",
		visible.Counted(s.Turns, "turn"), visible.Grouped(u.In+u.CacheRead+u.CacheWrite), visible.Grouped(u.Out), dollars(u.Cost))))
	switch open := s.Turn; {
	case open == nil:
	case s.Held:
		t.linef("%s", t.s.green(fmt.Sprintf("turn %s is running in another process", open.ID)))
	default:
		t.linef("%s", t.s.yellow(fmt.Sprintf("turn %s is %s; to resume it: belay resume %s%s", open.ID, s.State, inspect.ParentOf(s.ID), t.a.serverFlag())))
	}
}

// unanswered prints the state of calls that have no results yet.
func (t *transcript) unanswered(calls []belay.CallRecord) {
	if len(calls) == 0 {
		return
	}
	t.linef("     %s", t.s.yellow("results so far"))
	for i := range calls {
		c := &calls[i]
		t.linef("     %s %s  %s", t.s.bold("← "+c.Tool), short(about(c.Input), max(t.a.width/2, 20)), t.standing(c))
	}
}

// standing returns the state of a call in words.
func (t *transcript) standing(c *belay.CallRecord) string {
	switch {
	case c.Result != nil && c.Result.IsError:
		return t.s.red(string(c.Result.Class)) + ": " + short(oneLine(c.Result.Text), t.a.width)
	case c.Result != nil:
		return "done: " + short(oneLine(c.Result.Text), t.a.width)
	case c.State == belay.CallParked:
		return t.s.yellow("waits for " + oneLine(c.Wait))
	case c.State == belay.CallStarted && t.held:
		return t.s.green("running")
	case c.State == belay.CallStarted:
		return t.s.yellow("started but has no result: it may have had an effect")
	default:
		return "not started"
	}
}

// message prints one message. Each kind of message looks different.
func (t *transcript) message(m *belay.Message) {
	if m.Turn != t.turn {
		t.turn = m.Turn
		line := fmt.Sprintf("── turn %s · %s", m.Turn, m.Time.Local().Format("2006-01-02 15:04:05"))
		if t.trace != nil {
			if trace := t.trace(m.Turn); trace != "" {
				line += " · trace " + trace
			}
		}
		t.linef("\n%s", t.s.dim(line))
	}
	t.linef("%s %s", t.s.dim(fmt.Sprintf("%4d", m.Seq)), t.kind(m))
	if m.PreModifiedText != nil {
		t.body(t.s.dim("typed: "), *m.PreModifiedText)
	}
	for i := range m.Parts {
		t.part(m, &m.Parts[i])
	}
}

func (t *transcript) kind(m *belay.Message) string {
	s := t.s
	switch {
	case m.Kind == belay.KindUser && m.PreModifiedText != nil:
		return s.bold(s.green("user")) + " " + s.yellow("(rewritten)")
	case m.Kind == belay.KindUser:
		return s.bold(s.green("user"))
	case m.Kind == belay.KindAssistant:
		return s.bold(s.cyan("assistant")) + t.answerNote(m)
	case m.IsSkillInjection:
		return s.yellow("injected (by a skill)")
	case m.Kind == belay.KindCompaction || m.IsCompaction:
		return s.yellow("compaction") + s.dim(" (the model sees this summary instead of the earlier messages)")
	case m.Kind == belay.KindReminder, m.Kind == belay.KindContext, m.Kind == belay.KindInjected:
		return s.yellow(string(m.Kind))
	default:
		return s.dim(string(m.Kind))
	}
}

func (t *transcript) answerNote(m *belay.Message) string {
	var words []string
	if m.Model != "" {
		words = append(words, m.Model)
	}
	if m.StopReason != "" && m.StopReason != belay.StopEnd && m.StopReason != belay.StopToolUse {
		words = append(words, string(m.StopReason))
	}
	if len(words) == 0 {
		return ""
	}
	return t.s.dim(" " + strings.Join(words, " · "))
}

func (t *transcript) part(m *belay.Message, p *belay.Part) {
	switch {
	case p.Call != nil:
		t.call(p.Call)
	case p.Result != nil:
		t.result(p.Result)
	case p.Media != nil:
		t.linef("     %s", t.s.dim(fmt.Sprintf("[%s %s, %d bytes]", p.Media.MIME, p.Media.Name, len(p.Media.Data))))
	case p.Type == belay.PartThinking:
		if t.full {
			t.body(t.s.dim("thinking: "), p.Text)
		}
	case p.IsReminder && m.Kind != belay.KindReminder:
		t.body(t.s.yellow("reminder: "), p.Text)
	default:
		t.body("", p.Text)
	}
}

func (t *transcript) call(c *belay.CallPart) {
	line := t.s.bold("→ "+c.Tool) + " "
	input := c.Input
	if c.Final != nil {
		input = c.Final
	}
	if c.Malformed != "" {
		input = json.RawMessage(c.Malformed)
	}
	text := oneLine(plainJSON(input))
	if !t.full {
		text = short(text, max(t.a.width-12-len(c.Tool), 20))
	}
	t.linef("     %s%s", line, text)
	if len(c.RewrittenBy) > 0 {
		t.linef("       %s %s", t.s.yellow("rewritten by "+strings.Join(c.RewrittenBy, ", ")+"; asked for:"), t.s.dim(short(oneLine(plainJSON(c.Input)), max(t.a.width-30, 20))))
	}
}

func (t *transcript) result(r *belay.ResultPart) {
	head := t.s.bold("← " + r.Tool)
	if r.IsError {
		head += " " + t.s.red(string(r.Class))
	}
	t.linef("     %s", head)
	t.body("  ", r.Text)
}

// mostLines is how many lines of one part are printed without --full.
const mostLines = 12

// body prints a text, indented below its message.
func (t *transcript) body(prefix, text string) {
	lines := strings.Split(strings.TrimRight(visible.Clean(text), "\n"), "\n")
	if !t.full {
		lines = clipped(lines, mostLines, t.s.dim)
	}
	for i, line := range lines {
		if !t.full {
			line = short(line, max(t.a.width*3, 200))
		}
		if i == 0 {
			line = prefix + line
		} else if strings.TrimSpace(prefix) == "" {
			line = prefix + line
		}
		t.linef("     %s", line)
	}
}
