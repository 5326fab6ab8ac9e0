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
		Short: "Resume a turn that is parked or was interrupted",
		Long: `Resumes the open turn of a session where it stopped. Calls that were checked are not checked
by hooks again. A call that was running when its process ended does not run again, unless its tool says that this does no
harm. Mode and model are those that the turn began with, unless flags say otherwise.
Without SESSION it resumes the last changed session with an open turn. With --abandon it ends the turn instead.`,
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
			if settings.Server != "" {
				return a.runAtServer(cmd, settings, &o, "")
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

func (a *app) abandon(ctx context.Context, w *work) (iter.Seq2[belay.Event, error], error) {
	info := w.session
	if info.State.Turn == nil {
		return nil, usage("session %s has no open turn", info.ID)
	}
	turn, err := w.Agent.Session(info.ID).Abandon(ctx)
	if err != nil && turn == nil {
		return nil, err
	}
	a.remarkf("session %s: turn %s has ended", info.ID, info.State.Turn.ID)
	return func(func(belay.Event, error) bool) {}, nil
}
