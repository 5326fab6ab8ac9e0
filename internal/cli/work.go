package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/serve/api"
)

// work is the agent of a command, with its store.
type work struct {
	*assembly.Assembled

	store   assembly.Store
	session *belay.SessionInfo // the session to continue; nil for a new one
}

// open opens the store. Closing the work also closes the store.
func (w *work) open(ctx context.Context, a *app) error {
	store, err := a.assembler().OpenStore(ctx, w.Settings)
	if err != nil {
		return err
	}
	w.store, w.Store = store, store
	w.OnClose(store.Close)
	return nil
}

// begin opens the store and makes an agent: the declared agent, the agent of the session,
// or the agent that the settings describe. It also starts the agent's background jobs. A
// nil approver means that nobody can answer questions.
func (a *app) begin(ctx context.Context, settings *config.Loaded, o *runOptions, approver belay.Approver) (*work, error) {
	w := &work{Assembled: &assembly.Assembled{Settings: settings, Abandons: o.abandons}}
	if err := w.TakeDeclared(o.agent); err != nil {
		return nil, err
	}
	begin := a.beginNew
	if o.goOn || o.session != "" {
		begin = a.beginOld
	}
	model, err := begin(ctx, w, o)
	if err == nil {
		err = a.assembler().Assemble(ctx, w.Assembled, model, approver)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	a.assembler().Background(ctx, w.Assembled)
	return w, nil
}

// beginNew opens the model and the store for a new session. It opens the model first, so
// that a missing model creates no store.
func (a *app) beginNew(ctx context.Context, w *work, _ *runOptions) (model belay.Model, err error) { //nolint:ireturn // see openModel
	if model, err = assembly.OpenModel(w.Settings); err != nil {
		return nil, err
	}
	return model, w.open(ctx, a)
}

// beginOld opens the store and finds the existing session. It returns the model of the
// settings. Before, goOnAs and heedKept may have set it to the model of the open turn or of
// the session. To abandon a turn, it returns a model that gives no answers.
func (a *app) beginOld(ctx context.Context, w *work, o *runOptions) (model belay.Model, err error) { //nolint:ireturn // see openModel
	if err := missingStore(w.Settings); err != nil {
		return nil, err
	}
	if err := w.open(ctx, a); err != nil {
		return nil, err
	}
	info, err := findSession(ctx, w.store, o.session)
	if o.open && o.session == "" {
		info, err = findOpen(ctx, w.store)
	}
	if err != nil {
		return nil, err
	}
	w.session = &info
	if inspect.IsChild(info.ID) {
		return nil, usage("session %s belongs to a subagent, and only its parent runs turns in it: use `belay resume %s`", info.ID, inspect.ParentOf(info.ID))
	}
	if o.taskless && info.Held { // check this before the model is opened
		return nil, heldElsewhere(&info)
	}
	if o.taskless && info.State.Turn == nil {
		return nil, nothingOpen(info.ID)
	}
	if name := info.State.Agent; name != assembly.MainAgent {
		if err := w.TakeDeclared(name); err != nil {
			return nil, fmt.Errorf("session %s belongs to agent %s: %w", info.ID, name, err)
		}
	}
	if o.resumes && !info.Held {
		if err := a.goOnAs(ctx, w.Settings, &info); err != nil {
			return nil, err
		}
	}
	if o.abandons {
		return scripted.New(nil, nil), nil
	}
	if err := a.heedKept(w.Settings, &info); err != nil {
		return nil, err
	}
	return assembly.OpenModel(w.Settings)
}

// who returns the name of the person at the terminal. Decisions record this name.
func who() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("USERNAME"))
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	return cmp.Or(name, "somebody") + " (belay)"
}

// advise returns what the approval question shows about a call.
func (w *work) advise(ctx context.Context, q belay.Question) chat.Advice {
	return adviceOf(ctx, w.Settings, w.Floor, w.Store, q)
}

// adviceOf describes a call that waits for a decision in this process. store has its session. It may
// be nil.
func adviceOf(ctx context.Context, s *config.Loaded, f *assembly.Floor, store belay.Store, q belay.Question) chat.Advice {
	found, err := inspect.Advise(ctx, s, f, store, q)
	advice := shownAdvice(&found)
	if err != nil { // the question shows the input instead of the change
		advice.Effects = append(advice.Effects, chat.Effect{Text: err.Error()})
	}
	in := f.In(f.Explained(ctx, q).Mode)
	advice.Check = func(pattern string) error { return assembly.CheckPattern(ctx, in, pattern, q.Tool, q.Input) }
	return advice
}

// shownAdvice returns advice in the form that questions show.
func shownAdvice(a *api.Advice) chat.Advice {
	advice := chat.Advice{Cause: a.Cause, Reach: a.Reach, Run: a.Run, Pattern: a.Pattern}
	for _, f := range a.Findings {
		advice.Effects = append(advice.Effects, chat.Effect{Text: f.Text, Asks: f.Asks})
	}
	if p := a.Preview; p != nil {
		advice.Change = &chat.Change{Path: p.Path, Action: p.Action, Diff: p.Diff, Cut: p.Cut, Added: p.Added, Removed: p.Removed, Problem: p.Problem}
	}
	return advice
}
