package backtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Records are recorded sessions. A [belay.ListStore] has them.
type Records interface {
	// Sessions yields the sessions that match.
	Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error]
	// Read yields the messages of a session with numbers higher than after.
	Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]
	// Approvals yields the approvals that match.
	Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error]
}

var _ Records = belay.ListStore(nil)

// Options are the settings of [Run]. A nil *Options is valid.
type Options struct {
	// Sessions are the ids of the sessions to replay, each with the sessions of its
	// subagents. Defaults to all.
	Sessions []string
	// Labels limits the sessions to those with all of these labels. Defaults to all.
	Labels map[string]string
	// Since limits the messages to those that were stored at this time or later. Defaults
	// to all.
	Since time.Time
	// AllowEffects asks all hooks, also those that may have effects outside the process.
	// Defaults to false.
	AllowEffects bool
	// Effects returns why a hook must not be asked without AllowEffects, or "". Defaults to
	// the function [Effects].
	Effects func(hook.Subscription) string
	// PolicyOf returns the policy for the sessions of an agent, or nil for the common one.
	// Defaults to none: all agents have the same policy.
	PolicyOf func(ctx context.Context, agent string) (*Policy, error)
	// Limit is the maximum number of differences that the report holds. More are only
	// counted. Defaults to 10,000.
	Limit int
}

// Run replays recorded sessions against a policy.
func Run(ctx context.Context, records Records, policy *Policy, opts *Options) (*Report, error) {
	b := &backtest{records: records, policy: policy, tally: newTally(), askers: make(map[string]*asker)}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.Effects == nil {
		b.opts.Effects = Effects
	}
	b.opts.Limit = cmp.Or(b.opts.Limit, 10_000)
	began := time.Now()
	if _, err := b.asker(ctx, ""); err != nil { // mistakes in the policy come before anything is read
		return nil, err
	}
	sessions, err := b.sessions(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{Differences: []Difference{}, NotReplayed: make(map[string]int)}
	if err := b.replayAll(ctx, sessions, report); err != nil {
		return nil, err
	}
	b.addHooks(report)
	report.Took = hook.Latency(time.Since(began))
	return report, nil
}

// backtest is the state of one Run.
type backtest struct {
	records Records
	policy  *Policy
	opts    Options
	tally   *tally

	mu     sync.Mutex
	askers map[string]*asker // by agent; "" is the common one
}

// asker returns the asker for the sessions of an agent.
func (b *backtest) asker(ctx context.Context, agent string) (*asker, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.askers[agent]; a != nil {
		return a, nil
	}
	policy := b.policy
	if agent != "" {
		a := b.askers[""]
		if b.opts.PolicyOf == nil {
			return a, nil
		}
		own, err := b.opts.PolicyOf(ctx, agent)
		if err != nil {
			return nil, fmt.Errorf("backtest: the policy of agent %q: %w", agent, err)
		}
		if own == nil {
			b.askers[agent] = a
			return a, nil
		}
		policy = own
	}
	a, err := newAsker(policy, b.tally, func(sub hook.Subscription) string {
		if b.opts.AllowEffects {
			return ""
		}
		return b.opts.Effects(sub)
	})
	if err != nil {
		return nil, err
	}
	b.askers[agent] = a
	return a, nil
}

// sessions returns the sessions to replay. The first that began comes first.
func (b *backtest) sessions(ctx context.Context) ([]belay.SessionInfo, error) {
	var all []belay.SessionInfo
	labelled, err := b.labelled(ctx)
	if err != nil {
		return nil, err
	}
	filter := belay.SessionFilter{Since: b.opts.Since}
	add := func(filter belay.SessionFilter, wanted func(id string) bool) error {
		for info, err := range b.records.Sessions(ctx, filter) {
			if err != nil {
				return fmt.Errorf("backtest: list the sessions: %w", err)
			}
			if wanted(info.ID) && (labelled == nil || labelled[root(info.ID)]) {
				all = append(all, info)
			}
		}
		return nil
	}
	if len(b.opts.Sessions) == 0 {
		if err := add(filter, func(string) bool { return true }); err != nil {
			return nil, err
		}
	}
	for _, id := range b.opts.Sessions {
		filter.Prefix = id
		before := len(all)
		if err := add(filter, func(found string) bool { return found == id || strings.HasPrefix(found, id+"/") }); err != nil {
			return nil, err
		}
		if len(all) == before {
			return nil, b.missing(ctx, id)
		}
	}
	slices.SortFunc(all, func(x, y belay.SessionInfo) int {
		return cmp.Or(x.Created.Compare(y.Created), strings.Compare(x.ID, y.ID))
	})
	return slices.CompactFunc(all, func(x, y belay.SessionInfo) bool { return x.ID == y.ID }), nil
}

// labelled returns the sessions with the wanted labels, or nil if all sessions are wanted. The
// session of a subagent has the labels of the session that it belongs to.
func (b *backtest) labelled(ctx context.Context) (map[string]bool, error) {
	if len(b.opts.Labels) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	ids := make(map[string]bool)
	for info, err := range b.records.Sessions(ctx, belay.SessionFilter{Labels: b.opts.Labels}) {
		if err != nil {
			return nil, fmt.Errorf("backtest: list the sessions: %w", err)
		}
		ids[root(info.ID)] = true
	}
	return ids, nil
}

// root returns the session that the session of a subagent belongs to.
func root(session string) string {
	top, _, _ := strings.Cut(session, "/")
	return top
}

// missing returns why nothing of a session is replayed.
func (b *backtest) missing(ctx context.Context, id string) error {
	for info, err := range b.records.Sessions(ctx, belay.SessionFilter{ID: id}) {
		if err != nil {
			return fmt.Errorf("backtest: list the sessions: %w", err)
		}
		if info.ID != id {
			continue
		}
		return fmt.Errorf("backtest: session %q was last changed at %s, or does not have the labels: %w", id, info.Changed.Format(time.RFC3339), belay.ErrNotFound)
	}
	return fmt.Errorf("backtest: session %q: %w", id, belay.ErrNotFound)
}

// replayAll replays the sessions, several at a time.
func (b *backtest) replayAll(ctx context.Context, sessions []belay.SessionInfo, r *Report) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	done, added := make(map[int]*session), 0 // sessions that wait for an earlier one
	add := func(i int, s *session) {
		mu.Lock()
		defer mu.Unlock()
		done[i] = s
		for ; done[added] != nil; added++ {
			r.add(done[added], b.opts.Limit)
			delete(done, added)
		}
	}
	next := make(chan int)
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sessions)) { // Run waits for these goroutines
		group.Go(func() {
			for i := range next {
				s, err := b.replaySession(ctx, &sessions[i])
				if err != nil {
					cancel(fmt.Errorf("backtest: session %q: %w", sessions[i].ID, err))
					return
				}
				add(i, s)
			}
		})
	}
feed:
	for i := range sessions {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// replaySession replays one session.
func (b *backtest) replaySession(ctx context.Context, info *belay.SessionInfo) (*session, error) {
	a, err := b.asker(ctx, info.State.Agent)
	if err != nil {
		return nil, err
	}
	s := &session{records: b.records, asker: a, info: info, since: b.opts.Since, most: b.opts.Limit, notReplayed: make(map[string]int)}
	err = s.replay(ctx)
	return s, errors.Join(err, s.release(ctx))
}

// add adds a session to the report. The sessions come in order, so that the report holds the
// first differences.
func (r *Report) add(s *session, limit int) {
	r.Sessions++
	r.Prompts += s.prompts
	r.Calls += s.calls
	r.Results += s.results
	r.Unknown += s.unknown
	for why, n := range s.notReplayed {
		r.NotReplayed[why] += n
	}
	room := min(len(s.differences), limit-len(r.Differences))
	r.Differences = append(r.Differences, s.differences[:room]...)
	r.Omitted += len(s.differences) - room + s.omitted
}

// addHooks adds the totals of the hooks.
func (b *backtest) addHooks(r *Report) {
	seen := make(map[hookKey]bool)
	for _, agent := range slices.Sorted(maps.Keys(b.askers)) {
		for _, n := range b.askers[agent].listNotAsked() {
			if k := (hookKey{n.Phase, n.ID}); !seen[k] {
				seen[k] = true
				r.NotAsked = append(r.NotAsked, n)
			}
		}
	}
	r.Hooks = b.tally.sorted(r.NotAsked)
}
