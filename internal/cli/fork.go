package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/spf13/cobra"
)

func (a *app) forkCommand() *cobra.Command {
	var at int64
	var as string
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Make a new session from the beginning of another",
		Long: `Copies the messages of a session into a new session. With --at N it copies only the first N messages; "belay show SESSION"
prints the number of each message. The old session does not change. Calls without a result at that point get the result "aborted".`,
		Example: `  belay fork 20261115-k3f9x
  belay fork 20261115-k3f9x --at 4 --as other-way
  belay run --session other-way "try it with a table instead"`,
		Args:              arguments(1, 1, "name the SESSION to fork: `belay sessions` lists them"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at < 1 {
				return usage("--at: messages are counted from 1")
			}
			return a.look(cmd.Context(), func(store assembly.Store) error {
				return a.fork(cmd.Context(), store, args[0], at, as)
			})
		},
	}
	cmd.Flags().Int64Var(&at, "at", 0, "the last message to copy; by default all messages are copied")
	cmd.Flags().StringVar(&as, "as", "", "give the new session this id")
	return cmd
}

func (a *app) fork(ctx context.Context, store assembly.Store, word string, at int64, as string) error {
	from, err := findSession(ctx, store, word)
	if err != nil {
		return err
	}
	if as == "" {
		as = inspect.NewSessionID(time.Now())
	}
	if err := a.free(ctx, store, as); err != nil {
		return err
	}
	switch {
	case from.Last == 0:
		return fmt.Errorf("session %s has no messages yet", from.ID)
	case at == 0:
		at = from.Last
	case at > from.Last:
		return fmt.Errorf("session %s has no message %d: its last message is %d", from.ID, at, from.Last)
	}
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: store}) // forking needs no model
	if err != nil {
		return err
	}
	if _, err := agent.Session(from.ID).Fork(ctx, as, at); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.out, as); err != nil {
		return err
	}
	a.remarkf("%s", a.onErr.dim(fmt.Sprintf("forked from %s at message %d; to continue: belay run --session %s \"…\"", from.ID, at, as)))
	return agent.Close(context.WithoutCancel(ctx))
}
