package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/toolbox"
)

func (a *app) chatCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk with the agent in the terminal",
		Long: `Opens a conversation: text is streamed and formatted, each call and hook is one line, and approval questions appear where they
come up. Without a flag it starts a new session. The arrow keys recall what you typed before.`,
		Example: `  belay chat
  belay chat --continue
  belay chat --session 20261115-k3f9x --mode strict`,
		Args: arguments(0, 0, "chat takes flags only: type the task after it has started"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chatError(a.chat(cmd, &o))
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.goOn, "continue", "c", false, "continue the last session")
	flags.StringVarP(&o.session, "session", "s", "", "continue this session (its id, or a prefix of the id)")
	flags.StringVar(&o.as, "as", "", "give the new session this id")
	o.settingFlags(cmd)
	exclusive(cmd, "continue", "session", "as")
	_ = cmd.RegisterFlagCompletionFunc("session", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completeSessions(nil, nil, word)
	})
	return cmd
}

// chatError adds an exit code to the error that ended a chat.
func chatError(err error) error {
	switch {
	case errors.Is(err, chat.ErrNoTerminal):
		return usage("%w", err)
	case errors.Is(err, chat.ErrForced):
		return &exitError{code: exitAborted, err: err}
	default:
		return err
	}
}

func (a *app) chat(cmd *cobra.Command, o *runOptions) (err error) {
	if !a.inTerminal || !a.outTerminal {
		return chat.ErrNoTerminal
	}
	ctx := cmd.Context()
	settings, err := a.overruled(cmd, o)
	if err != nil {
		return err
	}
	if settings.Server != "" {
		return a.chatAtServer(cmd, settings, o)
	}
	person := &lateApprover{}
	o.resumes = true
	w, err := a.begin(ctx, settings, o, person)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	id, err := a.chooseSession(ctx, w, o)
	if err != nil {
		return err
	}
	if err := a.awaitCalled(ctx, w); err != nil {
		return err
	}
	at := &chatPlace{w: w, id: id}
	c := chat.New(&chat.Options{
		Controls: a.chatControls(at),
		History:  filepath.Join(settings.Home(), "history"),
		Store:    w.store, Model: w.answering(), Person: who(), Tools: w.Tools, Advise: w.advise,
		Directives: w.typeable(),
	})
	person.asker = c
	person.Approver = c.InOrder(toolbox.Answering(who(), c, c))
	defer a.onNotice(func(n notice) {
		if !c.Note(n.text) {
			a.remarkNotice(n)
		}
	})()
	at.session = w.Agent.Session(id)
	if err := c.Run(ctx, at.session); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("chat: %w", cause)
	}
	a.remarkf("%s", a.onErr.dim("session "+at.id+"; to continue: belay chat --session "+at.id+modelFlag(settings)+a.mcpFlags()))
	return nil
}

// typeable returns the names that a user can type after a slash.
func (w *work) typeable() []chat.Directive {
	var all []chat.Directive
	for _, n := range w.Agent.TypedNames() {
		for _, name := range append([]string{n.Name}, n.Aliases...) {
			all = append(all, chat.Directive{Name: name, About: n.Description})
		}
	}
	return all
}

// chooseSession returns the session of the chat: an existing one, or a new id.
func (a *app) chooseSession(ctx context.Context, w *work, o *runOptions) (string, error) {
	switch {
	case w.session != nil:
		return w.session.ID, nil
	case o.as != "":
		return o.as, a.free(ctx, w.store, o.as)
	default:
		return inspect.NewSessionID(time.Now()), nil
	}
}
