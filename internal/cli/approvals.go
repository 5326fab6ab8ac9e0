package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
	"github.com/spf13/cobra"
)

func (a *app) approvalsCommand() *cobra.Command {
	approvals := parent(&cobra.Command{
		Use:   "approvals",
		Short: "List, show and decide pending approvals",
		Long: `If a call needs approval and nobody is at the terminal, its turn parks. These commands list pending approvals,
show the call, and decide. Then "belay resume" continues the turn. A worker continues a turn that was submitted.
An approval can cover more than one call: "grants" lists such approvals, and "revoke" takes one back.`,
		Example: `  belay approvals list
  belay approvals show ap-2k
  belay approvals approve ap-2k
  belay approvals approve ap-2k --scope 'shell(git push *)'
  belay approvals deny ap-2k --reason "use the staging host"
  belay approvals answer ap-2k "on Thursday"`,
	})
	approvals.AddCommand(a.approvalsList(), a.approvalsShow(), a.approvalsApprove(), a.approvalsDeny(), a.approvalsAnswer(), a.approvalsGrants(), a.approvalsRevoke())
	return approvals
}

func (a *app) approvalsList() *cobra.Command {
	var asJSON, all bool
	var session string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List pending approvals",
		Long:  "Lists the pending approvals, the oldest first. With --all, lists decided approvals too.",
		Example: `  belay approvals list
  belay approvals list --all --json`,
		Args: arguments(0, 0, "list takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.records(cmd.Context(), func(r records) error {
				return a.listApprovals(cmd.Context(), r, session, all, asJSON)
			})
			if none := (*noStoreError)(nil); errors.As(err, &none) {
				a.remarkf("nothing waits for a decision")
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also list decided approvals")
	cmd.Flags().StringVarP(&session, "session", "s", "", "only approvals of this session (its id, or a prefix of the id)")
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

func (a *app) listApprovals(ctx context.Context, r records, session string, all, asJSON bool) error {
	filter := belay.ApprovalFilter{Pending: !all}
	if session != "" {
		found, err := findRecord(ctx, r, session)
		if err != nil {
			return err
		}
		filter.Session = found.ID
	}
	now := time.Now()
	out := a.newList(asJSON, "APPROVAL", "STATE", "SESSION", "TOOL", "ASKED", "WHY")
	listed, err := inspect.ApprovalsInOrder(ctx, r, filter)
	if err != nil {
		return err
	}
	for _, approval := range listed {
		out.add(approval, approval.ID, a.approvalState(&approval, now), approval.Session, approval.Tool, a.onOut.dim(ago(now, approval.Asked)), short(oneLine(approval.Reason), max(a.width-70, 30)))
	}
	return out.end("nothing waits for a decision")
}

func (a *app) approvalState(approval *belay.Approval, now time.Time) string {
	switch d := approval.Decided; {
	case d == nil && !approval.Expires.IsZero() && !now.Before(approval.Expires):
		return a.onOut.dim("expired")
	case d == nil:
		return a.onOut.yellow("pending")
	case d.Allow:
		return a.onOut.green("allowed") + reaching(d.Scope)
	default:
		return a.onOut.red("refused")
	}
}

func (a *app) approvalsShow() *cobra.Command {
	return &cobra.Command{
		Use:               "show APPROVAL",
		Short:             "Show the call that an approval is about",
		Long:              "Shows who asks, why, when the approval expires, and what the call would do: the command that would run, or the change as a diff.",
		Example:           "  belay approvals show ap-2k",
		Args:              arguments(1, 1, "name the APPROVAL: `belay approvals list` lists them"),
		ValidArgsFunction: a.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.records(ctx, func(r records) error {
				approval, err := findApproval(ctx, r, args[0])
				if err != nil {
					return err
				}
				return a.showApproval(ctx, r, &approval)
			})
		},
	}
}

func (a *app) showApproval(ctx context.Context, r records, approval *belay.Approval) error {
	s, now := a.onOut, time.Now()
	var t table
	t.add(s.dim("approval"), approval.ID+"  "+a.approvalState(approval, now))
	t.add(s.dim("session"), approval.Session+"  turn "+approval.Turn)
	t.add(s.dim("tool"), s.bold(approval.Tool))
	t.add(s.dim("asked"), fmt.Sprintf("%s by %s: %s", ago(now, approval.Asked), oneLine(approval.By), oneLine(approval.Reason)))
	if !approval.Expires.IsZero() {
		t.add(s.dim("expires"), approval.Expires.Local().Format("2006-01-02 15:04"))
	}
	if d := approval.Decided; d != nil {
		t.add(s.dim("decided"), strings.TrimSuffix(fmt.Sprintf("%s by %s: %s", ago(now, d.Time), oneLine(d.By), oneLine(d.Reason)), ": "))
		if d.Allow {
			t.add(s.dim("scope"), oneLine(d.Scope.String()))
		}
	}
	full, err := r.Approval(ctx, approval)
	if err == nil && full.Input == nil {
		err = fmt.Errorf("approval %s: its call is not in the transcript of session %s", approval.ID, approval.Session)
	}
	if advice := full.Advice; advice != nil {
		t.add(s.dim("reach"), advice.Reach)
		if advice.Run != "" {
			t.add(s.dim("would run"), advice.Run)
		}
		if advice.Pattern != "" {
			t.add(s.dim("pattern"), oneLine(advice.Pattern))
		}
	}
	if err := errors.Join(t.write(a.out, nil), err); err != nil {
		return err
	}
	lines := inputLines(s, full.Input)
	if full.Question != "" {
		lines = strings.Split(visible.All(full.Question), "\n")
	}
	_, err = fmt.Fprintf(a.out, "\n    %s\n", strings.Join(lines, "\n    "))
	return err
}

// findApproval finds an approval by its id, or by a prefix that only its id has. If the
// prefix matches several approvals and only one of them is pending, it returns that one.
func findApproval(ctx context.Context, r records, word string) (belay.Approval, error) {
	if strings.TrimSpace(word) == "" { // for example an unset shell variable: every id has the empty prefix
		return belay.Approval{}, usage("the id of the approval is empty: `belay approvals list` lists them")
	}
	var found []belay.Approval
	var ids []string
	for approval, err := range r.Approvals(ctx, belay.ApprovalFilter{}) {
		if err != nil {
			return belay.Approval{}, err
		}
		if approval.ID == word {
			return approval, nil
		}
		ids = append(ids, approval.ID)
		if strings.HasPrefix(approval.ID, word) {
			found = append(found, approval)
		}
	}
	if len(found) > 1 { // prefer an approval that is still pending
		if pending := slices.DeleteFunc(slices.Clone(found), func(a belay.Approval) bool { return a.Decided != nil }); len(pending) == 1 {
			found = pending
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return belay.Approval{}, fmt.Errorf("there is no approval %q%s: `belay approvals list` lists them", word, near.Hint(word, ids))
	default:
		return belay.Approval{}, fmt.Errorf("%q matches the ids of %d approvals: type more characters of the id", word, len(found))
	}
}

func (a *app) approvalsApprove() *cobra.Command {
	var reason, scope string
	cmd := &cobra.Command{
		Use:   "approve APPROVAL",
		Short: "Let a call run",
		Long: `Approves one call with exactly this input. Then "belay resume" continues the turn. A worker continues a turn that was
submitted.

With --scope session, the hook or rule that asked does not ask again about this tool in this session. With a pattern as the scope,
it does not ask again about calls that the pattern covers. Calls that the floor or a hook denies stay denied.
"belay approvals show" suggests a pattern.`,
		Example: `  belay approvals approve ap-2k
  belay approvals approve ap-2k --scope session
  belay approvals approve ap-2k --scope 'shell(git push *)'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := api.DecideApproval{Allow: true, Reason: reason}
			d.Scope, d.Pattern = scopeOf(scope)
			return a.records(cmd.Context(), func(r records) error { return a.decide(cmd.Context(), r, args[0], d) })
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "once", "what the approval covers: once, session, or a pattern such as 'shell(git push *)'")
	complete(cmd, "scope", []string{"once", "session"})
	return a.deciding(cmd, &reason)
}

func (a *app) approvalsDeny() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "deny APPROVAL",
		Short:   "Refuse a call",
		Long:    "Denies the call. The model gets the reason. Then \"belay resume\" continues the turn. A worker continues a turn that was submitted.",
		Example: `  belay approvals deny ap-2k --reason "use the staging host"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.records(cmd.Context(), func(r records) error {
				return a.decide(cmd.Context(), r, args[0], api.DecideApproval{Reason: reason})
			})
		},
	}
	return a.deciding(cmd, &reason)
}

// deciding adds the arguments and flags that "approve" and "deny" share.
func (a *app) deciding(cmd *cobra.Command, reason *string) *cobra.Command {
	cmd.Args = arguments(1, 1, "name the APPROVAL: `belay approvals list` lists them")
	cmd.ValidArgsFunction = a.completeApprovals
	cmd.Flags().StringVar(reason, "reason", "", "the reason, for the model")
	return cmd
}

// scopeOf converts the value of --scope.
func scopeOf(word string) (scope, pattern string) {
	switch word = strings.TrimSpace(word); word {
	case "", api.ScopeOnce:
		return api.ScopeOnce, ""
	case api.ScopeSession:
		return api.ScopeSession, ""
	default:
		return api.ScopePattern, word
	}
}

// decide approves or denies the call of an approval.
func (a *app) decide(ctx context.Context, r records, word string, d api.DecideApproval) error {
	approval, err := findApproval(ctx, r, word)
	if err != nil {
		return err
	}
	if approval.Tool == toolbox.PlanTool && d.Allow && d.Scope != "" && d.Scope != api.ScopeOnce {
		return usage("an approval of a plan is for this plan only: leave --scope out")
	}
	if toolbox.IsQuestion(&approval) && d.Allow && approval.Decided == nil {
		full, err := r.Approval(ctx, &approval)
		if err != nil {
			return err
		}
		if full.Question != "" {
			return wantsAnswer(&approval)
		}
	}
	return a.decideOn(ctx, r, &approval, d)
}

// decideOn stores the decision on an approval, and prints how the turn continues.
func (a *app) decideOn(ctx context.Context, r records, approval *belay.Approval, d api.DecideApproval) error {
	session := inspect.ParentOf(approval.Session)
	before, err := r.Load(ctx)
	if err != nil {
		return err
	}
	asking, err := r.Session(ctx, session)
	if err != nil && !errors.Is(err, belay.ErrNotFound) {
		return err
	}
	d.Approval, d.Hash = approval.ID, approval.Hash
	stored, err := r.Decide(ctx, approval, d)
	if errors.Is(err, belay.ErrDecided) && stored.Decided != nil {
		return fmt.Errorf("approval %s was already decided by %s: %s", approval.ID, oneLine(stored.Decided.By), settledAs(approval, stored.Decided.Allow))
	}
	if errors.Is(err, belay.ErrExpired) {
		return &exitError{code: exitFailed, err: fmt.Errorf("approval %s has expired", approval.ID), hint: "the call is denied when you resume the turn, and the model may ask again: belay resume " + session + a.serverFlag()}
	}
	if err != nil {
		return err
	}
	var scope belay.ApprovalScope
	if stored.Decided != nil {
		scope = stored.Decided.Scope
	}
	a.remarkf("%s%s: %s in session %s", settledAs(approval, d.Allow), reaching(scope), approval.Tool, approval.Session)
	if agent := dialect.Vendor(asking.Labels[guard.Label]); agent != "" {
		if d.Allow {
			a.remarkf("tell %s to make the same call again: the approval is for that call, once", agent.Title())
		}
		return nil
	}
	waiting := 0
	for other, err := range r.Approvals(ctx, belay.ApprovalFilter{Session: approval.Session, Pending: true}) {
		if err != nil {
			return err
		}
		if other.Turn == approval.Turn {
			waiting++
		}
	}
	if waiting > 0 {
		a.remarkf("%s", a.onErr.yellow(visible.Counted(waiting, "more approval")+" of this turn to decide: belay approvals list --session "+approval.Session+a.serverFlag()))
		return nil
	}
	after, err := r.Load(ctx)
	if err != nil {
		return err
	}
	a.tellGoOn(session, asking.Held, before, after)
	return nil
}

// tellGoOn prints how a turn continues after its last question was decided. The turn
// continues by itself in two cases: it is queued and a worker is running, or the process
// that asked still holds the session. before and after are the load of the store before
// and after the decision. They are nil if the token may not see the load of the server.
func (a *app) tellGoOn(session string, held bool, before, after *belay.Load) {
	resume, watch := "resume:  belay resume "+session+a.serverFlag(), "belay watch "+session+a.serverFlag()
	if before == nil || after == nil {
		a.remarkf("a worker continues the turn; to follow it: %s", watch)
		return
	}
	switch of := func(turn belay.DueTurn) bool { return turn.Session == session }; {
	case held && !slices.ContainsFunc(claimed(before), of) && !slices.ContainsFunc(claimed(after), of):
		a.remarkf("the process that asked for approval continues the turn; to follow it: %s", watch)
	case !working(after):
		a.remarkf("%s", resume)
	case slices.ContainsFunc(claimed(before), of), slices.ContainsFunc(claimed(after), of), slices.ContainsFunc(before.PutOff, of), after.Parked < before.Parked:
		a.remarkf("a worker continues the turn; to follow it: %s", watch)
	case before.Waiting > 0: // the turn may be one of the waiting turns
		a.remarkf("if the turn came from belay submit, a worker continues it; to follow it: %s", watch)
		a.remarkf("otherwise, %s", resume)
	default:
		a.remarkf("%s", resume)
	}
}

// claimed returns the turns that running processes have claimed.
func claimed(load *belay.Load) []belay.DueTurn {
	var all []belay.DueTurn
	for i := range load.Holders {
		all = append(all, load.Holders[i].Turns...)
	}
	return all
}

// decidedAs returns "allowed" or "refused".
func decidedAs(allow bool) string {
	if allow {
		return "allowed"
	}
	return "refused"
}

// completeApprovals completes the ids of pending approvals.
func (a *app) completeApprovals(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	var words []string
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_ = a.records(ctx, func(r records) error { // ignore errors: the user can type the id without completion
		for approval, err := range r.Approvals(ctx, belay.ApprovalFilter{Pending: true, Limit: 50}) {
			if err != nil {
				return err
			}
			if strings.HasPrefix(approval.ID, word) {
				words = append(words, approval.ID+"\t"+approval.Tool+" in "+approval.Session)
			}
		}
		return nil
	})
	return words, cobra.ShellCompDirectiveNoFileComp
}
