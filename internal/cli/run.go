package cli

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/scan"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/toolbox"
)

// runOptions are the flags of the commands that run a turn: run, resume, chat and worker.
type runOptions struct {
	goOn     bool
	session  string
	open     bool // if no session is named, prefer one with an open turn
	resumes  bool // the command may resume an open turn
	taskless bool // there is no task, so the session must have an open turn
	abandons bool // the command ends the open turn, and needs no model
	as       string
	agent    string // a declared agent; "" means the agent that the settings describe
	json     bool
	format   string             // see formats
	settings map[string]*string // flags that override settings, by the path of the setting
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [TASK]",
		Short: "Give the agent a task and watch it work",
		Long: `Runs a turn: the agent works on the task in the project's directory until it is done.
The model's text goes to standard output, tool calls and remarks to standard error.
Calls that need approval are asked about at the terminal. Without a terminal the turn parks.
Ctrl-C ends the turn cleanly, a second one ends the process. Exit codes: 0 done, 1 error, 2 usage,
3 blocked or refused, 4 parked, 5 out of steps or budget, 6 stuck, 130 interrupted.`,
		Example: `  belay run "tidy the changelog"
  # continue the last session, or a turn that was interrupted
  belay run --continue "now do the same for the readme"
  belay run --continue
  # standard input is added to the task, or is the task
  git diff | belay run "review this change"
  belay run - < task.md
  # the answer as one JSON object, or every event for a program
  belay run --output-format json "count the tests" | jq -r .end.text
  belay run --json "list the open ends" | jq -r '.call.tool // empty'
  # bounds
  belay run --mode read-only --max-steps 20 --budget 0.50 "find the bug"`,
		Args: arguments(0, 1, "give the task as one argument, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, &o, args) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.goOn, "continue", "c", false, "continue the last session; without a task, resume its interrupted turn")
	flags.StringVarP(&o.session, "session", "s", "", "continue this session (its id, or a prefix of the id)")
	flags.StringVar(&o.as, "as", "", "give the new session this id")
	a.agentFlag(cmd, &o.agent, "run this declared agent; by default, the agent that the settings describe")
	o.formatFlags(cmd)
	o.settingFlags(cmd)
	exclusive(cmd, "continue", "session", "as")
	exclusive(cmd, "json", "output-format")
	_ = cmd.RegisterFlagCompletionFunc("session", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completeSessions(nil, nil, word)
	})
	return cmd
}

// formats are the values of --output-format: what the command prints to standard output. The
// first is the default.
var formats = []string{"text", "json", "stream-json"}

// formatFlags adds the flags --json and --output-format.
func (o *runOptions) formatFlags(cmd *cobra.Command) {
	jsonFlag(cmd, &o.json, "print events as JSON lines: the same as --output-format stream-json")
	cmd.Flags().StringVar(&o.format, "output-format", formats[0], "print text, json (one object at the end, the event turn_end) or stream-json (every event as a line)")
	complete(cmd, "output-format", formats)
}

// settle checks the flag --output-format.
func (o *runOptions) settle() error {
	if o.format != "" && !slices.Contains(formats, o.format) {
		return usage("there is no output format %q%s: use one of %s", o.format, near.Hint(o.format, formats), strings.Join(formats, ", "))
	}
	o.json = o.json || o.format == "stream-json"
	return nil
}

// settingFlags adds the flags that override settings.
func (o *runOptions) settingFlags(cmd *cobra.Command) {
	o.settings = make(map[string]*string)
	for _, f := range settingFlags {
		o.settings[f.path] = cmd.Flags().StringP(f.name, f.short, "", f.usage)
	}
	complete(cmd, "mode", config.ModeNames())
	_ = cmd.RegisterFlagCompletionFunc("model", completeModels)
}

var settingFlags = []struct{ path, name, short, usage string }{
	{"model", "model", "m", "use this model: PROVIDER/NAME, such as openai/gpt-5.2 or ollama/qwen3 (see: belay models)"},
	{"mode", "mode", "", "which calls may run without approval: " + strings.Join(config.ModeNames(), ", ")},
	{"limits.steps", "max-steps", "", "end the turn after this many model calls"},
	{"budget.turn_cost", "budget", "", "end the turn when it has cost this many dollars"},
	{"instructions", "system", "", "use these instructions instead of the configured ones"},
}

func complete(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	})
}

// overruled loads the settings and overrides them with the flags.
func (a *app) overruled(cmd *cobra.Command, o *runOptions) (*config.Loaded, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	for _, f := range settingFlags {
		if settings.Server != "" && f.path == "model" && (slices.Contains(onServers, cmd.Name()) || !cmd.HasParent()) {
			continue // the server knows its models
		}
		if cmd.Flags().Changed(f.name) {
			if err := settings.Override(f.path, f.name, *o.settings[f.path]); err != nil {
				return nil, usage("%w", err)
			}
		}
	}
	return settings, nil
}

func (a *app) run(cmd *cobra.Command, o *runOptions, args []string) error {
	if err := o.settle(); err != nil {
		return err
	}
	task, err := a.task(cmd.Context(), o, args)
	if err != nil {
		return err
	}
	settings, err := a.overruled(cmd, o)
	if err != nil {
		return err
	}
	if settings.Server != "" {
		return a.runAtServer(cmd, settings, o, task)
	}
	o.resumes, o.taskless = task == "", task == ""
	return a.atWork(cmd.Context(), settings, o, func(ctx context.Context, w *work) (iter.Seq2[belay.Event, error], error) {
		a.tellHint(w, task)
		return a.chooseTurn(ctx, w, o, task)
	})
}

// chooseTurn starts or resumes a turn in the chosen session, or in a new one.
func (a *app) chooseTurn(ctx context.Context, w *work, o *runOptions, task string) (iter.Seq2[belay.Event, error], error) {
	if w.session == nil {
		id := inspect.NewSessionID(time.Now())
		if o.as != "" {
			id = o.as
			if err := a.free(ctx, w.store, id); err != nil {
				return nil, err
			}
		}
		return w.Agent.Session(id).Run(ctx, task), nil
	}
	info := w.session
	session, open := w.Agent.Session(info.ID), info.State.Turn
	switch {
	case info.Held:
		return nil, heldElsewhere(info)
	case task == "" && open == nil:
		return nil, nothingOpen(info.ID)
	case task == "":
		a.tellResuming(info.ID, open.ID, open.Step, open.Text)
		if err := a.awaitCalled(ctx, w); err != nil {
			return nil, err
		}
		return session.Resume(ctx), nil
	case open != nil && open.Parked:
		if err := a.endExpired(ctx, w); err != nil {
			return nil, err
		}
	case open != nil:
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("session %s: the previous turn was interrupted after %s; Belay now ends it as aborted", info.ID, visible.Counted(open.Step, "step"))))
	}
	return session.Run(ctx, task), nil
}

// endExpired returns an error if the parked turn of the session waits for something. If all
// its approvals have expired, the next turn ends it, and endExpired only says so.
func (a *app) endExpired(ctx context.Context, w *work) error {
	id := w.session.ID
	for _, err := range belay.Questions(ctx, w.store, belay.ApprovalFilter{Session: id, Limit: 1}) {
		if err != nil {
			return err
		}
		return parkedBefore(id, "")
	}
	a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("session %s: the approvals of the previous turn have expired; Belay now ends that turn as aborted", id)))
	return nil
}

func heldElsewhere(info *belay.SessionInfo) error {
	return fmt.Errorf("session %s is in use: another process runs a turn in it: wait, or stop that process", info.ID)
}

// parkedBefore returns the error for a session whose last turn is parked. flags are repeated in
// the suggested commands.
func parkedBefore(session, flags string) error {
	return &exitError{
		code: exitParked, err: fmt.Errorf("session %s: its last turn is parked: decide its approvals and resume it", session),
		hint: "belay approvals list" + flags + ", then: belay resume " + session + flags,
	}
}

// nothingOpen returns the error for a session that has no turn to resume.
func nothingOpen(session string) error {
	return &exitError{
		code: exitUsage, err: fmt.Errorf("session %s has no open turn to resume: give a task", session),
		hint: fmt.Sprintf(`such as: belay run --session %s "go on"`, session),
	}
}

// free returns an error if id is invalid, or if a session already has it.
func (a *app) free(ctx context.Context, store belay.ListStore, id string) error {
	if !validID(id) {
		return invalidID(id)
	}
	for info, err := range store.Sessions(ctx, belay.SessionFilter{Prefix: id}) {
		if err != nil {
			return err
		}
		if info.ID == id {
			return usage("a session %q exists already: to continue it, pass it to --session", id)
		}
	}
	return nil
}

func invalidID(id string) error {
	return usage("%q cannot be the id of a session: use letters, digits, dots, dashes and underscores", id)
}

func validID(id string) bool {
	return id != "" && len(id) <= 128 && !strings.HasPrefix(id, "-") && !strings.ContainsFunc(id, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
	})
}

// atWork opens everything that a turn needs, runs the turn, and closes everything.
func (a *app) atWork(ctx context.Context, settings *config.Loaded, o *runOptions, choose func(context.Context, *work) (iter.Seq2[belay.Event, error], error)) (err error) {
	p := newPrinter(a)
	var person belay.Approver
	late := &lateApprover{}
	if a.inTerminal && a.errTerminal {
		person = late
	}
	w, err := a.begin(ctx, settings, o, person)
	if err != nil {
		return err
	}
	late.asker = terminalAsker{p}
	late.Approver = p.order.Approver(toolbox.Answering(who(), terminalAsker{p}, approver{p, w.advise}))
	defer func() {
		if closing := w.Close(); closing != nil && err == nil {
			err = closing
		}
	}()
	stream, err := choose(ctx, w)
	if err != nil {
		return err
	}
	defer a.onNotice(p.notice)()
	end, err := a.follow(stream, p, o)
	if missing, ok := lacking(err); ok && w.session != nil {
		return a.withoutTools(w, w.session.ID, missing)
	}
	end.model, end.shown = modelFlag(settings), p.shown
	if end.Turn != nil {
		end.left = leftOf(ctx, w.store, end.session, err)
	}
	return a.outcome(end, err)
}

// modelFlag returns the flag --model as the user gave it, or "". The suggested command
// for the next turn repeats the flag.
func modelFlag(s *config.Loaded) string {
	if s.From("model").Kind != "flag" {
		return ""
	}
	return " --model " + quoted(s.Model)
}

// ended is a turn that has ended, and what its events reported.
type ended struct {
	*belay.Turn
	session string
	model   string // see modelFlag
	took    time.Duration
	remote  bool                        // a server ran the turn
	shown   func(*hook.Diagnostic) bool // reports whether the printer already showed a diagnostic
	left    leftover
}

// leftover is the state of a turn in the store, after this process ended the turn.
type leftover int

const (
	leftEnded   leftover = iota // the turn ended in the store too
	leftOpen                    // the turn is open in the store and can be resumed
	leftNothing                 // the store has nothing of the turn
)

// leftOf reads the state of the session's last turn from the store. If the last commit
// failed, the turn is still open in the store. A new turn would then abort the open turn.
func leftOf(ctx context.Context, store belay.ListStore, session string, failure error) leftover {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for info, err := range store.Sessions(ctx, belay.SessionFilter{Prefix: session}) {
		switch {
		case err != nil && failure != nil:
			return leftOpen // harmless if wrong: "belay resume" then reports that no turn is open
		case err != nil:
			return leftEnded
		case info.ID != session:
		case info.State.Turn != nil:
			return leftOpen
		case info.Last == 0:
			return leftNothing
		default:
			return leftEnded
		}
	}
	return leftNothing
}

// follow shows the events of a turn until it ends.
func (a *app) follow(stream iter.Seq2[belay.Event, error], p *printer, o *runOptions) (*ended, error) {
	ignorePipe := make(chan os.Signal, 1)
	signal.Notify(ignorePipe, syscall.SIGPIPE) // a closed pipe must end the turn, not kill the process
	defer signal.Stop(ignorePipe)
	defer a.onInterrupt(func() {
		p.asking(func() {
			a.remarkf("%s", a.onErr.yellow("stopping: ending the turn; press Ctrl-C again to end the process at once"))
		})
	})()
	p.spin.start()
	defer p.spin.end()
	end := &ended{}
	var began time.Time
	for event, err := range stream {
		if err != nil {
			return end, err
		}
		p.order.Hear(&event)
		if began.IsZero() {
			began = event.Time
		}
		if event.End != nil && event.Depth == 0 {
			end.Turn, end.session, end.took = event.End, event.Session, event.Time.Sub(began)
		}
		if err := a.show(&event, p, o); err != nil {
			return end, fmt.Errorf("the output was closed, so the turn was ended: %w", err)
		}
	}
	return end, nil
}

func (a *app) show(event *belay.Event, p *printer, o *runOptions) error {
	switch {
	case o.json, o.format == "json" && event.Kind == belay.EventTurnEnd && event.Depth == 0:
		return a.printJSON(event)
	case o.format == "json":
		return nil
	}
	p.tell(event)
	return p.failed()
}

// outcome prints how a turn ended. It returns an error with the exit code.
func (a *app) outcome(end *ended, err error) error {
	if end == nil || end.Turn == nil {
		return err
	}
	s := a.onErr
	u := end.Usage
	summary := []string{"session " + end.session, visible.Counted(end.Steps, "step")}
	if u.Tokens() > 0 {
		summary = append(summary, fmt.Sprintf("%s tokens in, %s out", visible.Grouped(u.In+u.CacheRead+u.CacheWrite), visible.Grouped(u.Out)))
	}
	if u.Cost > 0 {
		summary = append(summary, dollars(u.Cost))
	}
	summary = append(summary, took(end.took))
	a.remarkf("%s", s.dim(strings.Join(summary, " · ")))
	for _, d := range end.Diagnostics {
		if d.Level != codes.LevelInfo && !end.shown(&d) {
			a.remarkf("%s", s.yellow("warning: ")+oneLine(d.String()))
		}
	}
	if end.Reason == belay.EndTurn {
		return err
	}
	a.remarkf("%s", s.yellow(a.ending(end)))
	for _, line := range a.afterwards(end) {
		a.remarkf("%s", line)
	}
	if end.Reason == belay.EndError && err != nil {
		return err
	}
	return &exitError{code: endCode(end.Reason)}
}

// ending describes why a turn ended early.
func (a *app) ending(end *ended) string {
	line := "the turn ended: " + string(end.Reason)
	switch end.Reason {
	case belay.EndMaxSteps:
		line = fmt.Sprintf("the turn reached its limit of %s (--max-steps)", visible.Counted(end.Steps, "step"))
	case belay.EndBudget:
		line = "the turn reached its budget (--budget): " + end.Why
	case belay.EndBlocked:
		line = "the turn was blocked"
	case belay.EndRefused:
		line = "the model refused"
	case belay.EndStuck:
		line = "the turn ended because the agent repeated itself"
	case belay.EndParked:
		line = "the turn is parked: " + waitsFor(end)
	case belay.EndAborted:
		line = "the turn was aborted"
	case belay.EndTurn, belay.EndError:
	}
	if end.By != "" {
		line += " by " + oneLine(end.By)
	}
	shown := end.Reason == belay.EndBudget || end.Reason == belay.EndError && !end.remote // the error of a turn that ran here is returned
	if end.Why != "" && !shown {
		line += ": " + oneLine(end.Why)
	}
	return line
}

func waitsFor(end *ended) string {
	if len(end.Waits) == 0 {
		return "a tool waits for something"
	}
	questions, approvals := 0, 0
	var names []string
	for _, q := range end.Waits {
		switch _, words := toolbox.ReadQuestion(q); {
		case q.Wait != "":
			names = append(names, oneLine(q.Wait))
		case words:
			questions++
		default:
			approvals++
		}
	}
	var parts []string
	if approvals > 0 {
		parts = append(parts, visible.Counted(approvals, "approval"))
	}
	if questions > 0 {
		parts = append(parts, visible.Counted(questions, "answer"))
	}
	parts = append(parts, names...)
	return "it waits for " + strings.Join(parts, " and ")
}

// afterwards returns the commands that the user can run next.
func (a *app) afterwards(end *ended) []string {
	switch end.Reason {
	case belay.EndParked:
		var lines []string
		asked := slices.DeleteFunc(slices.Clone(end.Waits), func(q belay.Question) bool { return q.Wait != "" })
		for _, q := range asked {
			what := about(q.Input)
			if q.By == belay.AskedByTool {
				what = oneLine(q.Reason)
			}
			lines = append(lines, fmt.Sprintf("  %s  %s %s", q.ID, q.Tool, short(what, 60)))
		}
		lines = append(lines, a.toDecide(asked)...)
		if end.remote { // a worker continues the turn after the last decision
			return append(lines, "follow:  belay watch "+end.session+a.serverFlag())
		}
		return append(lines, "resume:  belay resume "+end.session+a.mcpFlags())
	case belay.EndMaxSteps, belay.EndBudget, belay.EndAborted, belay.EndStuck, belay.EndError:
		switch end.left {
		case leftOpen:
			return []string{"the end of the turn was not stored; resume it: belay resume " + end.session + a.mcpFlags()}
		case leftNothing:
			return []string{"nothing of the turn was stored: run it again"}
		case leftEnded:
		}
		return []string{fmt.Sprintf(`next:    belay run --session %s%s%s "continue"`, end.session, end.model, a.mcpFlags()+a.serverFlag())}
	default:
		return nil
	}
}

// tellHint prints a hint if a message begins with an unknown /name that is similar to a
// known one. The message still goes to the model unchanged.
func (a *app) tellHint(w *work, text string) {
	var names []string
	for _, n := range w.Agent.TypedNames() {
		names = append(append(names, n.Name), n.Aliases...)
	}
	if hint := near.Slash(scan.Leading(text), names); hint != "" {
		a.remarkf("%s", a.onErr.yellow(hint))
	}
}
