package cli

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
)

func (a *app) resumeCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "resume [SESSION]",
		Short: "Go on with a turn that is parked or was interrupted",
		Long: `Goes on with the open turn of a session, from where the store has it. Calls that were judged are not judged
by hooks again; a call that was running when its process ended is not run again unless its tool says that this does no
harm. Mode and model are those that the turn was begun with, unless flags say otherwise.
Without SESSION: the last changed one that has an open turn. With --abandon the turn is ended instead.`,
		Example: `  belay resume
  belay resume 20261115-k3f9x
  belay resume 20261115-k3f9x --abandon`,
		Args:              arguments(0, 1, "resume takes one SESSION"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.goOn, o.open, o.resumes, o.taskless = len(args) == 0, true, !o.abandons, !o.abandons
			if len(args) == 1 {
				o.session = args[0]
			}
			settings, err := a.overruled(cmd, &o)
			if err != nil {
				return err
			}
			return a.atWork(cmd.Context(), settings, &o, func(ctx context.Context, w *work) (iter.Seq2[belay.Event, error], error) {
				if o.abandons {
					return a.abandon(ctx, w)
				}
				return a.chooseTurn(ctx, w, &o, "")
			})
		},
	}
	cmd.Flags().BoolVar(&o.abandons, "abandon", false, "end the turn instead: its open calls get aborted results")
	jsonFlag(cmd, &o.json, "print events as JSON lines")
	o.settingFlags(cmd)
	return cmd
}

// abandon ends the open turn of a session.
func (a *app) abandon(ctx context.Context, w *work) (iter.Seq2[belay.Event, error], error) {
	info := w.session
	if info.State.Turn == nil {
		return nil, usage("session %s: no turn is open in it", info.ID)
	}
	turn, err := w.Agent.Session(info.ID).Abandon(ctx)
	if err != nil && turn == nil {
		return nil, err
	}
	a.remarkf("session %s: turn %s is ended", info.ID, info.State.Turn.ID)
	return func(func(belay.Event, error) bool) {}, nil
}
