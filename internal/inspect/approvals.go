package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
)

// ApprovalReader reads approvals and messages: a store or a server.
type ApprovalReader interface {
	Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error]
	Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]
}

// ApprovalOf describes a question, with its text if the model asks it.
func ApprovalOf(q belay.Question) api.Approval {
	out := api.Approval{Approval: q.Approval, Input: q.Input, Agent: q.Agent, Wait: q.Wait}
	if asked, ok := toolbox.ReadQuestion(q); ok {
		out.Question = asked.String()
	}
	return out
}

// Approval describes an approval, with its call and with what the call would do. The input is
// nil if the transcript does not have the call.
func (p *Project) Approval(ctx context.Context, store belay.ListStore, approval *belay.Approval) (api.Approval, error) {
	out := api.Approval{Approval: *approval, Expired: approval.Decided == nil && IsExpired(approval, time.Now())}
	info, found, err := FindSession(ctx, store, approval.Session)
	if err != nil || !found {
		return out, err
	}
	response, user, err := calledIn(ctx, store, &info, approval)
	if err != nil {
		return out, err
	}
	title := TitleOf(ctx, store, info)
	if response == nil { // the transcript may have been pruned
		out.Title = Beginning(title, MessageLength)
		return out, nil
	}
	out = ApprovalOf(belay.Question{Approval: *approval, Input: inputIn(response, approval.Call), Agent: info.State.Agent})
	out.Title, out.Expired = Beginning(title, MessageLength), approval.Decided == nil && IsExpired(approval, time.Now())
	if out.Message, err = UserMessage(ctx, store, &info); err != nil {
		return out, err
	}
	if open := info.State.Turn; user != nil && (out.Message == "" || open == nil || open.ID != approval.Turn) {
		out.Message = Beginning(UserText(user), MessageLength)
	}
	if out.Question == "" { // a question of the model has no effects to describe
		advice, err := p.advise(ctx, store, approval, response, info.State.Agent)
		if err != nil {
			return out, err
		}
		if agent := dialect.Vendor(info.Labels[guard.Label]); agent != "" { // Belay does not run this call
			advice.Run, advice.Pattern = "by "+agent.Title()+", once, when it makes the same call again", ""
		}
		out.Advice = &advice
	}
	return out, nil
}

// ApprovalsInOrder returns approvals in the order of the store, and those of one turn in the
// order of their calls, see [OrderApprovals].
func ApprovalsInOrder(ctx context.Context, store ApprovalReader, filter belay.ApprovalFilter) ([]belay.Approval, error) {
	var all []belay.Approval
	for approval, err := range store.Approvals(ctx, filter) {
		if err != nil {
			return nil, err
		}
		all = append(all, approval)
	}
	return all, OrderApprovals(ctx, store, all)
}

// OrderApprovals sorts the approvals of each turn by the order of their calls. The store has
// them in random order, because Belay checks the calls of one message at the same time.
func OrderApprovals(ctx context.Context, store ApprovalReader, all []belay.Approval) error {
	type turn struct{ session, turn string }
	at := make(map[turn][]int)
	for i := range all {
		key := turn{all[i].Session, all[i].Turn}
		at[key] = append(at[key], i)
	}
	for key, places := range at {
		if len(places) < 2 {
			continue
		}
		order := make(map[string]int)
		for m, err := range store.Read(ctx, key.session, 0) {
			if err != nil {
				return err
			}
			for _, c := range m.Calls() {
				if m.Turn == key.turn {
					order[c.ID] = len(order)
				}
			}
		}
		of := make([]belay.Approval, len(places))
		for i, place := range places {
			of[i] = all[place]
		}
		slices.SortStableFunc(of, func(a, b belay.Approval) int { return cmp.Compare(order[a.Call], order[b.Call]) })
		for i, place := range places {
			all[place] = of[i]
		}
	}
	return nil
}

// InputOf finds the input of the call that an approval is about. It reads the transcript from
// its end.
func InputOf(ctx context.Context, store belay.ListStore, approval *belay.Approval) (json.RawMessage, error) {
	info, _, err := FindSession(ctx, store, approval.Session)
	if err != nil {
		return nil, err
	}
	response, _, err := calledIn(ctx, store, &info, approval)
	if err != nil {
		return nil, err
	}
	if response == nil {
		return nil, fmt.Errorf("approval %s: its call is not in the transcript of session %s", approval.ID, approval.Session)
	}
	return inputIn(response, approval.Call), nil
}

// floorOf returns the floor for an approval, in the mode of the turn that asked.
func floorOf(ctx context.Context, from *assembly.Assembler, settings *config.Loaded, store belay.ListStore, approval *belay.Approval) (*assembly.Floor, *permit.Floor, error) {
	f, err := from.NewFloor(ctx, settings, assembly.SpillDir(settings))
	if err != nil {
		return nil, nil, err
	}
	info, found, err := FindSession(ctx, store, approval.Session)
	if err != nil {
		return nil, nil, err
	}
	var policy policy.Settings
	if open := info.State.Turn; found && open != nil && open.ID == approval.Turn {
		policy = open.Policy
	}
	in := f.Of(policy)
	return f, in, nil
}

// advise says what the call of an approval affects, how it would run, and which pattern
// covers similar calls.
func (p *Project) advise(ctx context.Context, store belay.ListStore, approval *belay.Approval, response *belay.Message, agent string) (api.Advice, error) {
	settings, err := p.Settings()
	if err != nil {
		return api.Advice{}, err
	}
	f, in, err := floorOf(ctx, p.From, settings, store, approval)
	if err != nil {
		return api.Advice{}, err
	}
	input := inputIn(response, approval.Call)
	e := in.Explain(ctx, approval.Tool, input)
	advice := describe(f, e, approval, agent)
	if advice.Hooks, advice.SharedHooks, err = askedHooks(ctx, store, approval, response); err != nil {
		return advice, err
	}
	if approval.Decided != nil {
		return advice, nil
	}
	advice.Pattern = in.Suggest(ctx, approval.Tool, input)
	advice.Preview, err = previewIn(ctx, settings, assembly.Existing(settings.Permit.Roots), in, store, approval, input)
	return advice, err
}

// CheckScope returns an error if a pattern cannot be the scope of an approval.
func CheckScope(ctx context.Context, from *assembly.Assembler, settings *config.Loaded, store belay.ListStore, approval *belay.Approval, pattern string) error {
	_, in, err := floorOf(ctx, from, settings, store, approval)
	if err != nil {
		return err
	}
	input, err := InputOf(ctx, store, approval)
	if err != nil {
		return err
	}
	return assembly.CheckPattern(ctx, in, pattern, approval.Tool, input)
}

// IsExpired reports whether the time to decide about an approval is over.
func IsExpired(a *belay.Approval, now time.Time) bool {
	return !a.Expires.IsZero() && !now.Before(a.Expires)
}
