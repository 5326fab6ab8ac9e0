package storetest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
)

// listFaults are stores with wrong listings of sessions.
var listFaults = []fault{
	{"lists a session that nobody opened", onSessions(func(all []belay.SessionInfo) []belay.SessionInfo {
		if len(all) == 0 {
			all = []belay.SessionInfo{{ID: "sqlite_master"}}
		}
		return all
	}), []string{"an empty store lists nothing"}},
	{"lists the first changed first", onSessions(func(all []belay.SessionInfo) []belay.SessionInfo {
		slices.Reverse(all)
		return all
	}), []string{
		"the last changed session is listed first", "many sessions are listed in order",
		"a listing of sessions can be abandoned and started again",
	}},
	{"lists sessions by when they were made", onSessions(func(all []belay.SessionInfo) []belay.SessionInfo {
		slices.SortFunc(all, func(a, b belay.SessionInfo) int { return b.Created.Compare(a.Created) })
		return all
	}), []string{"the last changed session is listed first"}},
	{"lists a page of sessions", onSessions(func(all []belay.SessionInfo) []belay.SessionInfo {
		return all[:min(len(all), 100)]
	}), []string{"many sessions are listed in order"}},
	{"takes a prefix for a pattern", bySessionFilter(func(filter belay.SessionFilter, info belay.SessionInfo) bool {
		prefix := strings.ToLower(strings.TrimRight(filter.Prefix, "%_"))
		return strings.HasPrefix(strings.ToLower(info.ID), prefix)
	}), []string{"sessions are selected by the exact prefix of their ids"}},
	{"does not look at the prefix", bySessionFilter(func(filter belay.SessionFilter, info belay.SessionInfo) bool {
		return !filter.Open || info.State.Turn != nil
	}), []string{"sessions are selected by the exact prefix of their ids", "a session is listed if all parts of the filter match"}},
	{"does not look at the id", onSessionFilter(func(filter *belay.SessionFilter) { filter.ID = "" }), []string{
		"one session is found by its exact id",
	}},
	{"takes an id for a prefix", onSessionFilter(func(filter *belay.SessionFilter) {
		if filter.ID != "" {
			filter.ID, filter.Prefix = "", filter.ID
		}
	}), []string{"one session is found by its exact id"}},
	{"does not look at the time of a change", onSessionFilter(func(filter *belay.SessionFilter) { filter.Since = time.Time{} }), []string{
		"a filter selects sessions that changed at a time or later",
	}},
	{"lists only sessions that changed later", bySessionFilter(func(filter belay.SessionFilter, info belay.SessionInfo) bool {
		return info.Changed.After(filter.Since) && strings.HasPrefix(info.ID, filter.Prefix)
	}), []string{
		"a filter selects sessions that changed at a time or later",
	}},
	{"takes parked turns for none", onSessions(func(all []belay.SessionInfo) []belay.SessionInfo {
		return slices.DeleteFunc(all, func(i belay.SessionInfo) bool { return i.State.Turn != nil && i.State.Turn.Parked })
	}), []string{"a filter selects sessions with an open turn, including parked ones"}},
	{"takes every session for one with a turn under way", bySessionFilter(func(filter belay.SessionFilter, info belay.SessionInfo) bool {
		return strings.HasPrefix(info.ID, filter.Prefix)
	}), []string{"a filter selects sessions with an open turn, including parked ones", "a session is listed if all parts of the filter match"}},
	{"lists sessions beyond the limit", onSessionFilter(func(filter *belay.SessionFilter) { filter.Limit = 0 }), []string{
		"a listing of sessions stops at its limit", "a session is listed if all parts of the filter match",
	}},
	{"filters what the limit left", func(f *flawed) {
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			return changed(f.inner.Sessions(ctx, belay.SessionFilter{Limit: filter.Limit}), func(all []belay.SessionInfo) []belay.SessionInfo {
				return slices.DeleteFunc(all, func(i belay.SessionInfo) bool {
					return filter.Open && i.State.Turn == nil || !strings.HasPrefix(i.ID, filter.Prefix)
				})
			})
		}
	}, []string{"a session is listed if all parts of the filter match"}},
}

// infoFaults are stores with wrong fields in the listed sessions.
var infoFaults = []fault{
	{"does not know when a session was changed", onInfo(func(i *belay.SessionInfo) { i.Changed = i.Created }), []string{
		"a listing has the times when a session was created and changed",
	}},
	{"takes each change for a new session", onInfo(func(i *belay.SessionInfo) { i.Created = i.Changed }), []string{
		"a listing has the times when a session was created and changed",
	}},
	{"knows no times", onInfo(func(i *belay.SessionInfo) { i.Created, i.Changed = time.Time{}, time.Time{} }), []string{
		"a listing has the times when a session was created and changed",
	}},
	{"takes a decision for a change", func(f *flawed) {
		at := make(map[string]time.Time)
		f.decide = func(ctx context.Context, d belay.Decision) (belay.Approval, error) {
			a, err := f.inner.Decide(ctx, d)
			at[a.Session] = time.Now()
			return a, err
		}
		onInfo(func(i *belay.SessionInfo) {
			if decided := at[i.ID]; decided.After(i.Changed) {
				i.Changed = decided
			}
		})(f)
	}, []string{"reading, deciding, releasing and rejected commits do not change a session's time"}},
	{"takes a release for a change", func(f *flawed) {
		f.release = func(ctx context.Context, session string, epoch int64) error {
			return errors.Join(f.inner.Commit(ctx, &belay.Commit{Session: session, Epoch: epoch}), f.inner.Release(ctx, session, epoch))
		}
	}, []string{"reading, deciding, releasing and rejected commits do not change a session's time"}},
	{"counts the messages that the model sees", func(f *flawed) {
		onInfo(func(i *belay.SessionInfo) { i.Last = int64(len(belay.Visible(f.said(i.ID)))) })(f)
	}, []string{"a listing has the number of the last message"}},
	{"takes a session that was opened for one that is held", onInfo(func(i *belay.SessionInfo) { i.Held = true }), []string{
		"a listing reports whether a session is held",
	}},
	{"tells nothing of holds", onInfo(func(i *belay.SessionInfo) { i.Held = false }), []string{
		"a listing reports whether a session is held", "a session whose holder has ended is not listed as held",
	}},
	{"takes a session for held until it is released", func(f *flawed) {
		released := make(map[string]bool)
		f.release = func(ctx context.Context, session string, epoch int64) error {
			released[session] = true
			return f.inner.Release(ctx, session, epoch)
		}
		onInfo(func(i *belay.SessionInfo) { i.Held = !released[i.ID] })(f)
	}, []string{"a session whose holder has ended is not listed as held"}},
	{"lists no states", onInfo(func(i *belay.SessionInfo) { i.State = belay.SessionState{Turns: i.State.Turns, Turn: i.State.Turn} }), []string{
		"a listing has every field of a state",
	}},
	{"lists the same state to everyone", func(f *flawed) {
		states := make(map[int]belay.SessionState) // by the step of the turn
		onInfo(func(i *belay.SessionInfo) {
			if i.State.Turn == nil {
				return
			}
			if have, ok := states[i.State.Turn.Step]; ok {
				i.State = have
			}
			states[i.State.Turn.Step] = i.State
		})(f)
	}, []string{"changing a listed state does not change the store"}},
	{"lists its own state", func(f *flawed) {
		own := make(map[string]*belay.TurnState)
		onCommit(func(_ *flawed, c *belay.Commit) {
			if have := own[c.Session]; have != nil && c.State != nil && c.State.Turn != nil {
				*have = *c.State.Turn
			}
		})(f)
		onInfo(func(i *belay.SessionInfo) { own[i.ID] = i.State.Turn })(f)
	}, []string{"changing a listed state does not change the store"}},
	{"lists sessions once", func(f *flawed) {
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			return once(f.inner.Sessions(ctx, filter))
		}
	}, []string{"a listing of sessions can be abandoned and started again"}},
	{"lists sessions as they were when it was asked", func(f *flawed) {
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			return kept(f.inner.Sessions(ctx, filter))
		}
	}, []string{"a listing of sessions can be abandoned and started again"}},
	{"is locked while sessions are listed", func(f *flawed) {
		lock := make(chan struct{}, 1)
		f.open = func(ctx context.Context, session string) (*belay.Stored, error) {
			select {
			case lock <- struct{}{}:
				defer func() { <-lock }()
				return f.inner.Open(ctx, session)
			default:
				return nil, errors.New("the database is locked")
			}
		}
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			return locked(lock, f.inner.Sessions(ctx, filter))
		}
	}, []string{"a session can be opened and committed to during a listing"}},
	{"ends a cancelled listing of sessions in silence", func(f *flawed) {
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			return silent(f.inner.Sessions(ctx, filter))
		}
	}, []string{"a cancelled listing of sessions ends with an error"}},
}

// The following functions make faults of listings.

// changed returns a listing with a change.
func changed[T any](listing iter.Seq2[T, error], change func(all []T) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		var failed error
		for v, err := range listing {
			if err != nil {
				failed = err
				break
			}
			all = append(all, v)
		}
		for _, v := range change(all) {
			if !yield(v, nil) {
				return
			}
		}
		if failed != nil {
			var none T
			yield(none, failed)
		}
	}
}

// onSessions makes a store that changes the listed sessions.
func onSessions(change func(all []belay.SessionInfo) []belay.SessionInfo) func(f *flawed) {
	return func(f *flawed) {
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			return changed(f.inner.Sessions(ctx, filter), change)
		}
	}
}

// onInfo makes a store that changes each listed session.
func onInfo(change func(i *belay.SessionInfo)) func(f *flawed) {
	return onSessions(func(all []belay.SessionInfo) []belay.SessionInfo {
		for i := range all {
			change(&all[i])
		}
		return all
	})
}

// onSessionFilter makes a store that changes the filter of sessions.
func onSessionFilter(change func(filter *belay.SessionFilter)) func(f *flawed) {
	return func(f *flawed) {
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			change(&filter)
			return f.inner.Sessions(ctx, filter)
		}
	}
}

// bySessionFilter makes a store that selects sessions with match. It keeps the limit of the
// filter.
func bySessionFilter(match func(filter belay.SessionFilter, info belay.SessionInfo) bool) func(f *flawed) {
	return func(f *flawed) {
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			return changed(f.inner.Sessions(ctx, belay.SessionFilter{}), func(all []belay.SessionInfo) []belay.SessionInfo {
				all = slices.DeleteFunc(all, func(i belay.SessionInfo) bool { return !match(filter, i) })
				if filter.Limit > 0 {
					all = all[:min(len(all), filter.Limit)]
				}
				return all
			})
		}
	}
}

// once returns a listing that works only the first time.
func once[T any](listing iter.Seq2[T, error]) iter.Seq2[T, error] {
	used := false
	return func(yield func(T, error) bool) {
		if !used {
			used = true
			listing(yield)
		}
	}
}

// kept returns a listing that always yields the result of its first use.
func kept[T any](listing iter.Seq2[T, error]) iter.Seq2[T, error] {
	var all []T
	var take sync.Once
	return func(yield func(T, error) bool) {
		take.Do(func() {
			for v := range listing {
				all = append(all, v)
			}
		})
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// locked returns a listing that holds a lock.
func locked[T any](lock chan struct{}, listing iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		lock <- struct{}{}
		defer func() { <-lock }()
		listing(yield)
	}
}

// silent returns a listing without the error at its end.
func silent[T any](listing iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range listing {
			if err != nil || !yield(v, nil) {
				return
			}
		}
	}
}
