package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/serve/api"
	"github.com/spf13/cobra"
)

func (a *app) approvalsGrants() *cobra.Command {
	var asJSON bool
	var session string
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List approvals that cover more than one call",
		Long: `Lists the grants, with who asked and who approved. A grant is an approval that covers a tool for a whole session, or
all calls that a pattern covers. It lasts until you revoke it or delete the session.`,
		Example: `  belay approvals grants
  belay approvals grants --session 20261115-k3f9x --json`,
		Args: arguments(0, 0, "grants takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.records(cmd.Context(), func(r records) error {
				return a.listGrants(cmd.Context(), r, session, asJSON)
			})
			if none := (*noStoreError)(nil); errors.As(err, &none) {
				a.remarkf("there are no grants")
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&session, "session", "s", "", "only grants of this session (its id, or a prefix of the id)")
	_ = cmd.RegisterFlagCompletionFunc("session", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completeSessions(nil, nil, word)
	})
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

func (a *app) listGrants(ctx context.Context, r records, session string, asJSON bool) error {
	if session != "" {
		found, err := findRecord(ctx, r, session)
		if err != nil {
			return err
		}
		session = found.ID
	}
	all, err := r.Grants(ctx, session)
	if err != nil {
		return err
	}
	now := time.Now()
	out := a.newList(asJSON, "GRANT", "SESSION", "ALLOWS", "ASKER", "BY", "GIVEN")
	for _, g := range all {
		allows := g.Pattern
		if allows == "" {
			allows = "all of " + g.Tool
		}
		out.add(g, g.Approval, g.Session, oneLine(allows), oneLine(g.Asker), oneLine(g.By), a.onOut.dim(ago(now, g.Time)))
	}
	return out.end("there are no grants")
}

func (a *app) approvalsRevoke() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke GRANT",
		Short:   "Take back an approval that covers more than one call",
		Long:    "Takes back a grant: the calls that it covers need approval again. Calls that have already run are not undone. The id of a GRANT is the id of its approval.",
		Example: "  belay approvals revoke ap-2k",
		Args:    arguments(1, 1, "name the GRANT: `belay approvals grants` lists them"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			var words []string
			if len(args) == 0 {
				ctx := context.Background()
				_ = a.look(ctx, func(store assembly.Store) error { // ignore errors: the user can type the id without completion
					all, err := (&storeRecords{a, store}).Grants(ctx, "")
					for _, g := range all {
						if strings.HasPrefix(g.Approval, word) {
							words = append(words, g.Approval+"\t"+g.Session)
						}
					}
					return err
				})
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.records(cmd.Context(), func(r records) error { return a.revoke(cmd.Context(), r, args[0]) })
		},
	}
}

func (a *app) revoke(ctx context.Context, r records, word string) error {
	all, err := r.Grants(ctx, "")
	if err != nil {
		return err
	}
	var meant []api.Grant
	var ids []string
	for _, g := range all {
		ids = append(ids, g.Approval)
		switch {
		case g.Approval == word:
			meant = []api.Grant{g}
		case word != "" && strings.HasPrefix(g.Approval, word) && (len(meant) != 1 || meant[0].Approval != word):
			meant = append(meant, g)
		}
	}
	switch len(meant) {
	case 0:
		return fmt.Errorf("there is no grant %q%s: `belay approvals grants` lists them", word, near.Hint(word, ids))
	case 1:
	default:
		return fmt.Errorf("%q matches the ids of %d grants: type more characters of the id", word, len(meant))
	}
	if err := r.Revoke(ctx, meant[0].Session, meant[0].Approval); err != nil {
		return err
	}
	a.remarkf("revoked: %s in session %s", meant[0].Approval, meant[0].Session)
	return nil
}
