package cli

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
)

// checkServerFlags returns an error for a flag that says how this machine runs turns, because
// the server runs them.
func (a *app) checkServerFlags(cmd *cobra.Command) error {
	for _, f := range settingFlags {
		if f.path != "model" && cmd.Flags().Changed(f.name) {
			return usage("--%s has no effect on a server: the settings of the server apply", f.name)
		}
	}
	if len(a.mcp) > 0 {
		return usage("--mcp has no effect on a server: the server starts its own MCP servers")
	}
	return nil
}

// serverModel returns the model that --model names, and the flag for a suggested command. Both
// are empty without the flag: the setting model is for turns of this machine.
func serverModel(o *runOptions) (model, flag string) {
	if model = *o.settings["model"]; model != "" {
		flag = " --model " + quoted(model)
	}
	return model, flag
}

// runAtServer runs or resumes a turn on a server. task is empty to resume.
func (a *app) runAtServer(cmd *cobra.Command, settings *config.Loaded, o *runOptions, task string) error {
	if err := a.checkServerFlags(cmd); err != nil {
		return err
	}
	return a.atServer(settings, func(c *serverClient) error {
		ctx := cmd.Context()
		s, found, err := a.openServerSession(ctx, c, o)
		if err != nil {
			return err
		}
		if o.abandons {
			return a.abandonAtServer(ctx, s, found)
		}
		var flag string
		s.model, flag = serverModel(o)
		s.agent = o.agent
		s.fresh = !o.goOn && o.session == ""
		p := newPrinter(a)
		if a.inTerminal && a.errTerminal {
			s.approver = toolbox.Answering(who(), terminalAsker{p}, approver{p, s.advise})
		}
		stream, err := a.chooseServerTurn(ctx, s, found, task)
		if err != nil {
			return err
		}
		end, err := a.follow(stream, p, o)
		end.model, end.shown, end.remote = flag, p.shown, true
		return a.outcome(end, err)
	})
}

// chooseServerTurn starts or resumes a turn of a session.
func (a *app) chooseServerTurn(ctx context.Context, s *serverSession, found *api.Session, task string) (iter.Seq2[belay.Event, error], error) {
	open := found.Turn
	switch {
	case task == "" && open == nil:
		return nil, nothingOpen(found.ID)
	case task == "" && found.Held:
		return nil, fmt.Errorf("session %s: its turn is running: to follow it, use `belay watch %s%s`", found.ID, found.ID, a.serverFlag())
	case task == "":
		a.tellResuming(found.ID, open.ID, open.Step, open.Text)
		return s.Resume(ctx), nil
	case open != nil && open.Parked:
		return nil, parkedBefore(found.ID, a.serverFlag())
	}
	load, err := (&serverRecords{s.c}).Load(ctx)
	if err != nil {
		return nil, err
	}
	if load != nil && !working(load) {
		a.remarkf("%s", a.onErr.yellow("no worker is running: the turn begins when one is started, with `belay worker` or with `belay serve --workers N`"))
	}
	return s.Run(ctx, task), nil
}

// abandonAtServer ends the open turn of a session.
func (a *app) abandonAtServer(ctx context.Context, s *serverSession, found *api.Session) error {
	if found.Turn == nil {
		return usage("session %s has no open turn", found.ID)
	}
	if _, err := s.Abandon(ctx); err != nil {
		return err
	}
	a.remarkf("session %s: turn %s has ended", found.ID, found.Turn.ID)
	return nil
}

// tellResuming prints which turn is resumed.
func (a *app) tellResuming(session, turn string, step int, text string) {
	a.remarkf("%s", a.onErr.dim(fmt.Sprintf("session %s: resuming turn %s, after %s: %s", session, turn, visible.Counted(step, "step"), short(oneLine(text), 60))))
}

// chatAtServer opens a conversation in a session of a server.
func (a *app) chatAtServer(cmd *cobra.Command, settings *config.Loaded, o *runOptions) error {
	if err := a.checkServerFlags(cmd); err != nil {
		return err
	}
	return a.atServer(settings, func(c *serverClient) error {
		ctx := cmd.Context()
		s, found, err := a.openServerSession(ctx, c, o)
		if err != nil {
			return err
		}
		var flag string
		s.model, flag = serverModel(o)
		at := s
		talk := chat.New(&chat.Options{
			Controls: serverControls(c, func(next *serverSession) *serverSession {
				next.model, next.agent, next.approver = at.model, at.agent, at.approver
				at = next
				return next
			}),
			History: filepath.Join(settings.Home(), "history"),
			Store:   s, Model: cmp.Or(s.model, found.Model), Person: who(), Advise: s.advise,
		})
		s.approver = toolbox.Answering(who(), talk, talk)
		if err := talk.Run(ctx, s); err != nil {
			return err
		}
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("chat: %w", cause)
		}
		a.remarkf("%s", a.onErr.dim("session "+at.id+"; to continue: belay chat --session "+at.id+flag+a.serverFlag()))
		return nil
	})
}
