package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/serve/api"
	"github.com/spf13/cobra"
)

func (a *app) workersCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "Show the workers, and how many turns and jobs wait",
		Long: `Lists the processes that have the store open, with the turns that each has claimed. Shows how many turns and jobs wait, and
how long the oldest has waited.`,
		Example: `  belay workers
  belay workers --json | jq .turns.waiting`,
		Args: arguments(0, 0, "workers takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.look(cmd.Context(), func(store assembly.Store) error { return a.workers(cmd.Context(), store, asJSON) })
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object")
	return cmd
}

func (a *app) workers(ctx context.Context, store assembly.Store, asJSON bool) error {
	l, err := inspect.WorkloadOf(ctx, store)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(l)
	}
	s := a.onOut
	var t table
	line := fmt.Sprintf("%d waiting%s, %d parked", l.Turns.Waiting, oldest(l.Turns.Waiting, l.Turns.OldestAge), l.Turns.Parked)
	if n := len(l.Turns.PutOff); n > 0 {
		line += fmt.Sprintf(", %d postponed", n)
	}
	t.add(s.dim("turns"), line)
	for _, turn := range l.Turns.PutOff {
		t.add("", putOff(&turn))
	}
	t.add(s.dim("jobs"), fmt.Sprintf("%d waiting%s, %d running", l.Jobs.Waiting, oldest(l.Jobs.Waiting, l.Jobs.OldestAge), l.Jobs.Running))
	workers := 0
	for _, h := range l.Turns.Holders {
		if h.Self {
			continue
		}
		kind := "other"
		if h.Worker {
			kind = "worker"
			workers++
		}
		line := fmt.Sprintf("process %d on %s, since %s, holds %s", h.PID, oneLine(h.Host), h.Since.Local().Format(time.DateTime), visible.Counted(int(h.Sessions), "session"))
		if h.Gone {
			line += ", " + s.yellow("gone")
		}
		t.add(s.dim(kind), line)
		for _, turn := range h.Turns {
			t.add("", fmt.Sprintf("%s  %s  for %s", turn.Session, turn.Agent, took(time.Since(turn.Since))))
		}
	}
	if workers == 0 {
		t.add(s.dim("workers"), "none: `belay worker` starts one")
	}
	return t.write(a.out, nil)
}

// putOff describes a turn that no worker could run yet.
func putOff(turn *belay.DueTurn) string {
	line := fmt.Sprintf("%s  %s", turn.Session, turn.Agent)
	if wait := time.Until(turn.Again); !turn.Again.IsZero() && wait < time.Hour {
		line += "  again in " + took(max(wait, 0))
	}
	if turn.Why != "" {
		line += "  " + visible.All(short(oneLine(turn.Why), 300))
	}
	return line
}

// working reports whether a running worker has the store open.
func working(load *belay.Load) bool {
	return slices.ContainsFunc(load.Holders, func(h belay.HolderLoad) bool { return h.Worker && !h.Gone })
}

// waitingFor returns why a queued turn waits, or "" if the reason is unknown.
func waitingFor(ctx context.Context, r records, session string) (string, error) {
	load, err := r.Load(ctx)
	if err != nil || load == nil {
		return "", err
	}
	for i := range load.PutOff {
		if load.PutOff[i].Session == session {
			return "postponed: " + putOff(&load.PutOff[i]), nil
		}
	}
	if !working(load) {
		return "no worker is running: `belay worker` starts one", nil
	}
	return "", nil
}

func oldest(waiting int, age time.Duration) string {
	if waiting == 0 {
		return ""
	}
	return ", the oldest for " + took(age)
}

func (a *app) watchCommand() *cobra.Command {
	var from int64
	var asJSON, full, end bool
	cmd := &cobra.Command{
		Use:   "watch SESSION",
		Short: "Follow a session, whichever process runs its turns",
		Long: `Shows the stored messages of a session, then each new message when it is stored. Runs until you interrupt it, unless you use
--end. If the connection to the store is lost, the command connects again and skips no message; after 30 seconds without success
it fails. Text that the model is still streaming is not shown; the process that runs the turn shows it.`,
		Example: `  belay watch 20261115-k3f9x
  belay watch 20261115-k3f9x --from 12 --json
  belay watch 20261115-k3f9x --end`,
		Args:              arguments(1, 1, "name the SESSION: `belay sessions` lists them"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if from < 0 {
				return usage("--from: messages are counted from 1")
			}
			w := &watcher{app: a, asJSON: asJSON, end: end, shown: max(from-1, 0)}
			w.transcript = &transcript{a: a, w: a.out, s: a.onOut, full: full}
			return a.records(cmd.Context(), func(r records) error { return w.watch(cmd.Context(), r, args[0]) })
		},
	}
	cmd.Flags().Int64Var(&from, "from", 1, "begin with this message")
	cmd.Flags().BoolVar(&end, "end", false, "exit when no turn is running or queued, or when the turn parks; the exit code is that of the turn")
	cmd.Flags().BoolVar(&full, "full", false, "print long parts in full")
	jsonFlag(cmd, &asJSON, "print one message per line as JSON, and with --end a last line with the state of the session")
	return cmd
}

// watcher shows the changes of a session.
type watcher struct {
	app         *app
	transcript  *transcript
	asJSON, end bool
	told        string // the last state that was printed
	shown       int64  // the number of the last message that was printed
}

func (w *watcher) watch(ctx context.Context, r records, word string) error {
	s, err := findRecord(ctx, r, word)
	if err != nil {
		return err
	}
	w.transcript.session = s.ID
	for m, err := range r.Watch(ctx, s.ID, w.shown) {
		if err != nil {
			return err
		}
		if m != nil {
			if err := w.show(m); err != nil {
				return err
			}
			continue
		}
		over, err := w.state(ctx, r, s.ID)
		if err != nil || over {
			return err
		}
	}
	return nil
}

func (w *watcher) show(m *belay.Message) error {
	w.shown = m.Seq
	if w.asJSON {
		return w.app.printJSON(m)
	}
	w.transcript.message(m)
	return w.transcript.err
}

// state prints the state of the session. over is true if watching should end.
func (w *watcher) state(ctx context.Context, r records, session string) (over bool, err error) {
	// Read the queue before the session, so that a turn that starts in between appears in
	// the queue or in the session.
	queued, err := r.Queue(ctx, session)
	if err != nil {
		return false, err
	}
	s, err := r.Session(ctx, session)
	if err != nil {
		return false, err
	}
	if s.Last > w.shown { // messages were stored meanwhile: they come first, and then this state again
		return false, nil
	}
	if !w.asJSON {
		if err := w.tell(ctx, r, &s, len(queued)); err != nil {
			return false, err
		}
	}
	if !w.end {
		return false, nil
	}
	if s.Turn != nil {
		if !s.Turn.Parked {
			return false, nil
		}
		if goesOn, err := goesOn(ctx, r, &s); err != nil || goesOn {
			return false, err
		}
		return true, w.over(&s, exitParked)
	}
	if len(queued) > 0 {
		return false, nil
	}
	code := exitOK
	if s.Reason != "" {
		code = endCode(s.Reason)
	}
	return true, w.over(&s, code)
}

// goesOn reports whether a parked turn is about to continue: all its questions are decided, and
// a process has taken the turn or may take it.
func goesOn(ctx context.Context, r records, s *api.Session) (bool, error) {
	decided := false
	for approval, err := range r.Approvals(ctx, belay.ApprovalFilter{Session: s.ID}) {
		if err != nil {
			return false, err
		}
		if approval.Turn == s.Turn.ID {
			if approval.Decided == nil {
				return false, nil
			}
			decided = true
		}
	}
	if !decided || s.Held { // the process that asked continues the turn
		return decided, nil
	}
	load, err := r.Load(ctx)
	if err != nil || load == nil { // a server continues its turns, and does not tell everybody about its load
		return err == nil, err
	}
	of := func(turn belay.DueTurn) bool { return turn.Session == s.ID }
	if slices.ContainsFunc(claimed(load), of) || working(load) && (load.Waiting > 0 || slices.ContainsFunc(load.PutOff, of)) {
		return true, nil
	}
	now, err := r.Session(ctx, s.ID) // a worker may have finished the turn meanwhile
	return err == nil && (now.Turn == nil || !now.Turn.Parked), err
}

// tell prints the state of the session if the state has changed.
func (w *watcher) tell(ctx context.Context, r records, s *api.Session, queued int) error {
	lines := []string{fmt.Sprintf("session %s: %s", s.ID, s.State)}
	switch {
	case s.Turn == nil && queued > 0:
		why, err := waitingFor(ctx, r, s.ID)
		if err != nil {
			return err
		}
		lines[0] = strings.TrimSuffix(fmt.Sprintf("session %s: waiting; %s", s.ID, why), "; ")
	case s.Turn == nil:
		if why := whyEnded(s); why != "" {
			lines[0] += ": " + why
		}
	case s.Turn.Parked:
		for approval, err := range r.Approvals(ctx, belay.ApprovalFilter{Session: s.ID, Pending: true}) {
			if err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("approve: belay approvals approve %s%s   (%s)", approval.ID, w.app.serverFlag(), visible.All(oneLine(approval.Tool))))
		}
	}
	if text := strings.Join(lines, "\n"); text != w.told {
		w.told = text
		w.app.remarkf("%s", w.app.onErr.dim(text))
	}
	return nil
}

// watchEnd is the last line of "belay watch --json --end".
type watchEnd struct {
	Session string        `json:"session"`
	State   string        `json:"state"`
	Ending  *belay.Ending `json:"ending,omitempty"`
}

// over ends watching with an exit code.
func (w *watcher) over(s *api.Session, code int) error {
	if w.asJSON {
		if err := w.app.printJSON(watchEnd{s.ID, s.State, s.Ending}); err != nil {
			return err
		}
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}
