package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/provider/scripted"
)

// work is an agent with its store, for as long as a command needs it.
type work struct {
	*assembly.Assembled

	store   assembly.Store
	session *belay.SessionInfo // the session to continue; nil for a new one
}

// open opens the store, until the work is closed.
func (w *work) open(ctx context.Context, a *app) error {
	store, err := a.assembler().OpenStore(ctx, w.Settings)
	if err != nil {
		return err
	}
	w.store, w.Store = store, store
	w.OnClose(store.Close)
	return nil
}

// begin opens the store and makes the agent that the settings describe, or the one that ran the turn that is resumed. A
// nil approver means that nobody can be asked.
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

// beginNew opens the model and the store for a new session. Without a model it creates no store.
func (a *app) beginNew(ctx context.Context, w *work, _ *runOptions) (model belay.Model, err error) { //nolint:ireturn // see openModel
	if model, err = assembly.OpenModel(w.Settings); err != nil {
		return nil, err
	}
	return model, w.open(ctx, a)
}

// beginOld opens the store for an existing session, and the model that its open turn began with.
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
	if isChild(info.ID) {
		return nil, usage("session %s is a subagent's, which runs only the turns of its parent: go on with `belay resume %s`", info.ID, parentOf(info.ID))
	}
	if o.taskless && info.Held { // this needs no model
		return nil, heldElsewhere(&info)
	}
	if o.taskless && info.State.Turn == nil {
		return nil, nothingOpen(&info)
	}
	if name := info.State.Agent; name != assembly.MainAgent {
		if err := w.TakeDeclared(name); err != nil {
			return nil, fmt.Errorf("session %s is agent %s's: %w", info.ID, name, err)
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

// newSessionID returns an id that sorts by day and is short enough to type.
func newSessionID(now time.Time) string {
	return now.Format("20060102") + "-" + strings.ToLower(rand.Text()[:5])
}

// who returns the name of the person at the terminal, for the record of
// decisions.
func who() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("USERNAME"))
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	return cmp.Or(name, "somebody") + " (belay)"
}

// advise returns the advice that the chat and the terminal show with a question
// about a call.
func (w *work) advise(ctx context.Context, q belay.Question) chat.Advice {
	advice := w.Floor.Advise(ctx, q)
	return chat.Advice{Reach: advice.Reach, Run: advice.Run, Pattern: advice.Pattern, Check: advice.Check}
}
