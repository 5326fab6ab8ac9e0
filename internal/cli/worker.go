package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/store/postgres"
	"github.com/spf13/cobra"
)

// workerOptions are the flags of the command worker.
type workerOptions struct {
	run                runOptions
	turns              int
	perAgent, perModel []string
	grace, takeover    time.Duration
	once, json         bool
}

func (a *app) workerCommand() *cobra.Command {
	var o workerOptions
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run submitted turns and background jobs",
		Long: `Runs the submitted turns and the background jobs of the store until you stop it. Any number of workers share a store: a file
on one machine, or a PostgreSQL database on many. If a call needs approval, its turn is parked. After the decision a worker continues it.

On SIGTERM or Ctrl-C the worker releases each turn at the end of its current step, and other workers, or the next one that
starts, continue these turns. A step that takes longer than --grace is cancelled. If a worker is killed, other workers take
over its turns within --takeover.`,
		Example: `  belay worker
  belay --store postgres://belay@db.example/belay worker --turns 8
  belay submit "tidy the changelog" && belay worker --once`,
		Args: arguments(0, 0, "worker takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, &o) },
	}
	o.flags(cmd)
	return cmd
}

// flags adds the flags to the command.
func (o *workerOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&o.turns, "turns", 8, "run at most this many turns at once")
	flags.StringSliceVar(&o.perAgent, "per-agent", nil, "limit the turns of an agent: NAME=COUNT, * for all others")
	flags.StringSliceVar(&o.perModel, "per-model", nil, "limit the turns of a model: PROVIDER/NAME=COUNT, * for all others")
	flags.DurationVar(&o.grace, "grace", 30*time.Second, "how long a step may continue when the worker is stopped")
	flags.DurationVar(&o.takeover, "takeover", 30*time.Second, "how soon others take over the turns of this worker if it is killed; only for a database")
	flags.BoolVar(&o.once, "once", false, "end when no turn is due and no job is left")
	jsonFlag(cmd, &o.json, "print each turn as a JSON line")
	o.run.settingFlags(cmd)
}

// leastTakeover is the minimum of --takeover. A worker needs time to send several
// heartbeats.
const leastTakeover = time.Second

// engine converts the flags to the options of the engine.
func (o *workerOptions) engine(s *config.Loaded) (*engine.Options, error) {
	switch {
	case o.turns < 1:
		return nil, usage("--turns is %d: it must be 1 or more", o.turns)
	case o.grace <= 0:
		return nil, usage("--grace is %s: it must be more than 0, such as 30s", o.grace)
	case o.takeover < leastTakeover:
		return nil, usage("--takeover is %s: it must be %s or more: a worker without a heartbeat for this long counts as dead", o.takeover, leastTakeover)
	}
	perAgent, err := bounds("per-agent", o.perAgent, func(name string) error { return anAgent(s, name) })
	if err != nil {
		return nil, err
	}
	perModel, err := bounds("per-model", o.perModel, func(name string) error {
		_, _, err := s.ModelOf(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &engine.Options{Turns: o.turns, PerAgent: perAgent, PerModel: perModel, Grace: o.grace}, nil
}

// bounds parses NAME=COUNT. It rejects unknown names, because a limit for them would have
// no effect.
func bounds(flag string, words []string, known func(name string) error) (map[string]int, error) {
	all := make(map[string]int, len(words))
	for _, word := range words {
		at := max(strings.LastIndexByte(word, '='), 0) // the last "=": the name of a model may contain another
		name, count := word[:at], strings.TrimPrefix(word[at:], "=")
		n, err := strconv.Atoi(count)
		if name == "" || err != nil || n < 1 {
			return nil, usage("--%s: %q is not NAME=COUNT, with a count from 1 up", flag, word)
		}
		if _, twice := all[name]; twice {
			return nil, usage("--%s: %s is given twice: remove one of them", flag, name)
		}
		if name != "*" {
			if err := known(name); err != nil {
				return nil, usage("--%s: %w", flag, err)
			}
		}
		all[name] = n
	}
	return all, nil
}

// anAgent returns an error if no agent has this name.
func anAgent(s *config.Loaded, name string) error {
	project := &inspect.Project{Settings: func() (*config.Loaded, error) { return s, nil }}
	if err := project.CheckAgent(name); err != nil {
		return fmt.Errorf("%w: `belay agents list` lists them, %s is the one that the settings describe, and * means all others", err, assembly.MainAgent)
	}
	return nil
}

// serve runs the worker until it is stopped.
func (a *app) serve(cmd *cobra.Command, o *workerOptions) (err error) {
	ctx := cmd.Context()
	settings, err := a.overruled(cmd, &o.run)
	if err != nil {
		return err
	}
	opts, err := o.engine(settings)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("takeover") && !config.IsDSN(settings.Store) {
		a.remarkf("%s", a.onErr.dim("--takeover has no effect: the store is a file, so other workers take over the turns of a dead worker at once"))
	}
	if _, err := assembly.OpenModel(settings); err != nil { // check first, so that a missing model creates no store
		return err
	}
	store, err := a.openShared(ctx, settings, o.takeover)
	if err != nil {
		return err
	}
	agents, err := a.openHost(ctx, cmd, &o.run, store, nil)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	if _, _, err := a.observe(false).serving(store); err != nil {
		return errors.Join(err, agents.Close(), store.Close())
	}
	defer func() { err = errors.Join(err, agents.Close(), store.Close()) }()
	if _, err := agents.Agent(ctx, host.Main); err != nil { // find mistakes before the worker claims a turn
		return err
	}
	var left leftTurns
	opts.Logger, opts.Told = a.logger(), func(taken engine.Taken) {
		left.note(&taken)
		a.tellTaken(&taken, o.json)
	}
	worker, err := engine.New(store, agents.Agent, opts)
	if err != nil {
		return err
	}
	defer a.onInterrupt(func() {
		a.remarkf("%s", a.onErr.yellow("stopping: each turn is released at the end of its current step; press Ctrl-C again to stop at once"))
	})()
	a.remarkf("%s", a.onErr.dim(fmt.Sprintf("working in %s on %s", settings.Project, config.MaskDSN(settings.Store))))
	working, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	sharing, endShare := context.WithCancel(context.WithoutCancel(ctx)) // turns that are handed over still have events
	defer endShare()
	watching.Go(func() { agents.Share(sharing) })
	if o.once {
		watching.Go(func() { // ends when nothing is due, or when the worker ends
			defer stop()
			a.untilIdle(working, store, &left)
		})
	}
	err = worker.Run(working)
	stop()
	return err
}

// openHost opens the host that makes the worker's agents. The host runs no background jobs,
// because the worker runs them. If model is not nil, it replaces the model of the settings.
func (a *app) openHost(ctx context.Context, cmd *cobra.Command, o *runOptions, store belay.Store, model belay.Model) (*host.Host, error) {
	opts := a.hostOptions(cmd, o)
	opts.Store, opts.Model, opts.NoJobs = store, model, true
	return host.Open(ctx, opts)
}

// hostOptions returns the options of a host that the flags describe.
func (a *app) hostOptions(cmd *cobra.Command, o *runOptions) *host.Options {
	opts := &host.Options{
		Dir: a.dir, UserDir: a.userDir, Environ: a.environ, MCP: a.mcpFiles(), Hooks: a.hooks,
		Notify: func(n host.Notice) { a.showAssembly(assembly.Notice(n)) },
	}
	watched := a.observe(false)
	opts.Extensions = watched.extensions()
	if a.debug {
		opts.Logger = a.logger()
	}
	opts.Logger = watched.logger(opts.Logger)
	if a.store != "" {
		opts.Settings = append(opts.Settings, host.Setting{Path: "store", Value: a.store, From: "--store"})
	}
	for _, f := range settingFlags {
		if cmd.Flags().Changed(f.name) {
			opts.Settings = append(opts.Settings, host.Setting{Path: f.path, Value: *o.settings[f.path], From: "--" + f.name})
		}
	}
	return opts
}

// openShared opens the store of a worker.
func (a *app) openShared(ctx context.Context, settings *config.Loaded, takeover time.Duration) (assembly.Store, error) { //nolint:ireturn // which one it is, the settings say
	if config.IsDSN(settings.Store) {
		return a.assembler().OpenDatabase(ctx, settings, &postgres.Options{Takeover: takeover})
	}
	return a.assembler().OpenStore(ctx, settings)
}

// idlePoll is how often untilIdle reads the store.
const idlePoll = 50 * time.Millisecond

// leftTurns are the sessions with turns that this worker cannot run. The worker leaves
// these turns to other workers.
type leftTurns struct {
	mu       sync.Mutex
	sessions map[string]bool
}

func (l *leftTurns) note(taken *engine.Taken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions == nil {
		l.sessions = make(map[string]bool)
	}
	if taken.Turn == nil && taken.Err != nil || isMissing(taken.Err) {
		l.sessions[taken.Session] = true
	} else {
		delete(l.sessions, taken.Session)
	}
}

// isMissing reports whether this worker cannot run a turn because the turn's model or a
// tool is missing. Another worker may have them.
func isMissing(err error) bool {
	_, model := errors.AsType[*belay.MissingModelError](err)
	_, tool := errors.AsType[*belay.MissingToolError](err)
	return model || tool
}

func (l *leftTurns) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sessions)
}

// untilIdle returns when no job is left, and no turn is due or running. It ignores due turns
// that are left to other workers.
func (a *app) untilIdle(ctx context.Context, store assembly.Store, others *leftTurns) {
	often := time.NewTicker(idlePoll)
	defer often.Stop()
	for {
		if load, err := store.Load(ctx); err == nil {
			left := max(load.Waiting-others.count(), 0)
			for _, h := range load.Holders {
				left += len(h.Turns)
			}
			stats, err := store.Queue().(hook.StatQueue).Stats(ctx)
			if err == nil && left+stats.Waiting+stats.Running == 0 {
				return
			}
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return
		}
	}
}

// takenLine is one turn in the output of "belay worker --json".
type takenLine struct {
	Session string          `json:"session"`
	Agent   string          `json:"agent"`
	Reason  belay.EndReason `json:"reason,omitempty"`
	Steps   int             `json:"steps,omitempty"`
	Usage   belay.Usage     `json:"usage,omitzero"`
	By      string          `json:"by,omitempty"`
	Why     string          `json:"why,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// tellTaken prints the result of a turn that the worker has run.
func (a *app) tellTaken(taken *engine.Taken, asJSON bool) {
	if errors.Is(taken.Err, belay.ErrNoTurn) {
		return // the turn had already ended
	}
	l := takenLine{Session: taken.Session, Agent: taken.Agent}
	if taken.Turn != nil {
		l.Reason, l.Steps, l.Usage, l.By, l.Why = taken.Turn.Reason, taken.Turn.Steps, taken.Turn.Usage, taken.Turn.By, taken.Turn.Why
	}
	if taken.Err != nil {
		l.Error = told(taken.Err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if asJSON {
		_ = a.printJSON(l) // ignore errors: the worker continues if nobody reads its output
		return
	}
	what := string(l.Reason)
	switch {
	case errors.Is(taken.Err, belay.ErrHandedOver):
		what = "handed over"
	case l.Error != "":
		what = a.onErr.red(oneLine(l.Error))
	case l.Reason != belay.EndTurn:
		if why := strings.TrimPrefix(l.By+": "+l.Why, ": "); l.Why != "" {
			what += ": " + visible.All(oneLine(why))
		}
		what = a.onErr.yellow(what)
	}
	a.remarkf("%s  %s  %s, %s", time.Now().Format(time.TimeOnly), l.Session, what, visible.Counted(l.Steps, "step"))
}

// submitOptions are the flags of the command submit.
type submitOptions struct {
	session, as, agent, model string
	json                      bool
}

func (a *app) submitCommand() *cobra.Command {
	var o submitOptions
	cmd := &cobra.Command{
		Use:   "submit TASK",
		Short: "Submit a task to a worker",
		Long: `Puts the task into the store, for any "belay worker", and prints the session's id. The worker's settings decide
what the agent may do, and the agent works in the worker's directory. A session runs one task at a time, in the order in
which they were submitted.`,
		Example: `  belay submit "tidy the changelog"
  belay submit --session 20261115-k3f9x "now do the same for the readme"
  belay watch "$(belay submit 'list the open ends')" --end`,
		Args: arguments(1, 1, "give the task as one argument, in quotes, or - to read it from standard input"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.submit(cmd.Context(), &o, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.session, "session", "s", "", "continue this session (its id, or a prefix of the id)")
	flags.StringVar(&o.as, "as", "", "give the new session this id")
	flags.StringVar(&o.agent, "agent", "", "run this declared agent; by default, the agent that the settings describe")
	flags.StringVar(&o.model, "model", "", "use this model: PROVIDER/NAME; by default, the model of the worker")
	jsonFlag(cmd, &o.json, "print one JSON object")
	exclusive(cmd, "session", "as")
	return cmd
}

func (a *app) submit(ctx context.Context, o *submitOptions, args []string) (err error) {
	task, err := a.task(ctx, &runOptions{}, args)
	if err != nil {
		return err
	}
	settings, err := a.settings()
	if err != nil {
		return err
	}
	agent := assembly.MainAgent
	if o.agent != "" {
		if _, err := assembly.FindAgent(settings, o.agent); err != nil {
			return err
		}
		agent = o.agent
	}
	if o.model != "" {
		if _, _, err := settings.ModelOf(o.model); err != nil {
			return usage("--model: %w", err)
		}
	}
	store, err := a.assembler().OpenStore(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	id := inspect.NewSessionID(time.Now())
	switch {
	case o.session != "":
		info, err := findSession(ctx, store, o.session)
		if err != nil {
			return err
		}
		if inspect.IsChild(info.ID) {
			return usage("session %s belongs to a subagent, and only its parent runs turns in it", info.ID)
		}
		id = info.ID
		if o.agent == "" && info.State.Agent != "" {
			agent = info.State.Agent
		}
	case o.as != "":
		if err := a.free(ctx, store, o.as); err != nil {
			return err
		}
		id = o.as
	}
	turn, err := belay.NewQueuedTurn(id, agent, task)
	if err != nil {
		return usage("%w", err)
	}
	turn.Model = o.model
	if err := store.Submit(ctx, turn); err != nil {
		return err
	}
	if o.json {
		return a.printJSON(struct {
			Session string `json:"session"`
			ID      string `json:"id"`
			Agent   string `json:"agent"`
		}{id, turn.ID, agent})
	}
	if _, err := fmt.Fprintln(a.out, id); err != nil {
		return err
	}
	a.remarkf("%s", a.onErr.dim("submitted; see: belay watch "+id))
	load, err := store.Load(ctx)
	if err == nil && !working(&load) {
		a.remarkf("%s", a.onErr.yellow("no worker is running: start one with `belay worker`, in the directory where the agent should work"))
	}
	return err
}
