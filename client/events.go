package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// Events yields the events of a session after a position: first stored events, then new ones.
// after is the Position of an event or a session, the field After of a started turn, the number
// of a message, or empty for everything. Events ends when ctx is done, which is not an error.
//
// Events that are not stored, such as deltas, can be lost. If the client was too slow for them,
// Events yields a *belay.MissedError and continues. It does not report those that happened
// while there was no connection. Every other error is the last value.
func (c *Client) Events(ctx context.Context, session, after string) iter.Seq2[belay.Event, error] {
	return func(yield func(belay.Event, error) bool) {
		to, err := path("/v1/sessions/", session, "/events")
		if err != nil {
			yield(belay.Event{}, err)
			return
		}
		for f, err := range c.frames(ctx, &outgoing{method: "GET", path: to}, after) {
			var e belay.Event
			switch {
			case err != nil:
			case f.event == frameConnected:
				continue
			case f.event == api.EventMissed:
				err = missed(f)
			default:
				err = decode(f, &e)
				e.Position = f.id
			}
			if !yield(e, err) || ends(err) {
				return
			}
		}
	}
}

// Change is one event of [Client.AllEvents].
type Change struct {
	// ID is where to continue: pass it to AllEvents.
	ID string
	// Kind is turn_start, turn_end, approval_requested, approval_decided or snapshot.
	Kind string
	api.FeedEvent
	// Snapshot has everything that is open. It is set if Kind is snapshot: at the beginning,
	// and again after a lost connection.
	Snapshot *api.Snapshot
}

// AllEvents yields the approvals and turns of all sessions that the token may see. It begins
// with a snapshot. after is the ID of an earlier change, or empty. It ends as [Client.Events]
// does.
func (c *Client) AllEvents(ctx context.Context, after string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for f, err := range c.frames(ctx, &outgoing{method: "GET", path: "/v1/events"}, after) {
			change := Change{ID: f.id, Kind: f.event}
			switch {
			case err != nil:
			case f.event == frameConnected:
				continue
			case f.event == api.EventMissed:
				err = missed(f)
			case f.event == api.EventSnapshot:
				change.Snapshot = new(api.Snapshot)
				err = decode(f, change.Snapshot)
			default:
				err = decode(f, &change.FeedEvent)
			}
			if !yield(change, err) || ends(err) {
				return
			}
		}
	}
}

// RunEvents yields the records of hook runs from now on. After a lost connection it continues
// where it was. If since is set, it yields the records that started at this time or later first,
// at most 1,000. A record that is stored at that moment may come twice. It ends as
// [Client.Events] does.
func (c *Client) RunEvents(ctx context.Context, in api.RunEvents, since time.Time) iter.Seq2[hook.Run, error] {
	return func(yield func(hook.Run, error) bool) {
		send, err := encode("GET", "/v1/runs/events", in)
		if err != nil {
			yield(hook.Run{}, err)
			return
		}
		for f, err := range c.frames(ctx, send, "") {
			var runs []hook.Run
			switch {
			case err != nil:
			case f.event == frameConnected, f.event == api.EventPosition && since.IsZero():
				continue
			case f.event == api.EventPosition:
				var list api.RunList
				list, err = c.ListRuns(ctx, api.ListRuns{Session: in.Session, All: in.All, Since: since, Limit: mostMissedRuns})
				runs, since = list.Runs, time.Time{} // later, the id of the last record says where to continue
				slices.Reverse(runs)
			case f.event == api.EventMissed:
				err = missed(f)
			default:
				runs = make([]hook.Run, 1)
				err = decode(f, &runs[0])
			}
			if err != nil {
				if !yield(hook.Run{}, err) || ends(err) {
					return
				}
				continue
			}
			for i := range runs {
				if !yield(runs[i], nil) {
					return
				}
			}
		}
	}
}

// mostMissedRuns is how many earlier records RunEvents lists.
const mostMissedRuns = 1000

// ends reports whether an error is the last value of a stream.
func ends(err error) bool {
	_, goesOn := errors.AsType[*belay.MissedError](err)
	return err != nil && !goesOn
}

// missed reads an event "missed".
func missed(f frame) error {
	var m api.Missed
	if err := decode(f, &m); err != nil {
		return err
	}
	return &belay.MissedError{Missed: m.Missed}
}

// decode decodes the data of an event.
func decode(f frame, into any) error {
	if err := json.Unmarshal(f.data, into); err != nil {
		return fmt.Errorf("cannot decode the event %q: %w", f.event, err)
	}
	return nil
}
