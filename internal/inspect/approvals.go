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
	input, err := InputOf(ctx, store, approval)
	if err != nil { // the transcript may have been compacted or pruned
		return api.Approval{Approval: *approval}, nil //nolint:nilerr // the approval itself is known
	}
	info, _, err := FindSession(ctx, store, approval.Session)
	if err != nil {
		return api.Approval{}, err
	}
	out := ApprovalOf(belay.Question{Approval: *approval, Input: input, Agent: info.State.Agent})
	if out.Question == "" { // a question of the model has no effects to describe
		advice, err := p.Advise(ctx, store, approval, input)
		if err != nil {
			return out, err
		}
		out.Advice = &advice
	}
	return out, nil
}

// ApprovalsInOrder returns approvals in the order of the store. It sorts the approvals of
// one turn by the order of their calls. The store has them in random order, because Belay
// checks the calls of one message at the same time.
func ApprovalsInOrder(ctx context.Context, store ApprovalReader, filter belay.ApprovalFilter) ([]belay.Approval, error) {
	var all []belay.Approval
	type turn struct{ session, turn string }
	at := make(map[turn][]int)
	for approval, err := range store.Approvals(ctx, filter) {
		if err != nil {
			return nil, err
		}
		key := turn{approval.Session, approval.Turn}
		at[key] = append(at[key], len(all))
		all = append(all, approval)
	}
	for key, places := range at {
		if len(places) < 2 {
			continue
		}
		order := make(map[string]int)
		for m, err := range store.Read(ctx, key.session, 0) {
			if err != nil {
				return nil, err
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
	return all, nil
}

// InputOf finds the input of the call that an approval is about. It reads the
// transcript.
func InputOf(ctx context.Context, store belay.Store, approval *belay.Approval) (json.RawMessage, error) {
	var input json.RawMessage
	for m, err := range store.Read(ctx, approval.Session, 0) {
		if err != nil {
			return nil, err
		}
		if m.Turn != approval.Turn {
			continue
		}
		for _, c := range m.Calls() {
			if c.ID != approval.Call {
				continue
			}
			input = c.Input
			if c.Final != nil {
				input = c.Final
			}
		}
	}
	if input == nil {
		return nil, fmt.Errorf("approval %s: its call is not in the transcript of session %s", approval.ID, approval.Session)
	}
	return input, nil
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

// Advise says what the call of an approval affects, how it would run, and which pattern
// covers similar calls.
func Advise(ctx context.Context, from *assembly.Assembler, settings *config.Loaded, store belay.ListStore, approval *belay.Approval, input json.RawMessage) (api.Advice, error) {
	f, in, err := floorOf(ctx, from, settings, store, approval)
	if err != nil {
		return api.Advice{}, err
	}
	e := in.Explain(ctx, approval.Tool, input)
	advice := api.Advice{Reach: e.Reach(), Run: f.Confinement(e)}
	if approval.Decided == nil {
		advice.Pattern = in.Suggest(ctx, approval.Tool, input)
	}
	return advice, nil
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
