package serve

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// feedEventKinds are the kinds of events in /v1/events.
var feedEventKinds = []string{"snapshot", "turn_start", "turn_end", "approval_requested", "approval_decided", eventMissed, eventProblem}

// The feed reads the store this often while somebody follows it. It sees the changes of other
// processes with this delay, and those of this process at once.
const feedPoll = time.Second

// feedOverlap is how much earlier than its cursor a snapshot begins. The clocks of the
// machines that share a store may differ by this much.
const feedOverlap = 10 * time.Second

// mostSeen is how many sessions the feed remembers.
const mostSeen = 50_000

// mostSnapshot is the maximum number of sessions in a snapshot.
const mostSnapshot = 500

// feed watches the whole store for all clients that follow it.
type feed struct {
	s *Server

	mu        sync.Mutex
	followers map[*follower]bool
	stop      context.CancelFunc // nil: nobody follows
	ready     chan struct{}      // closed when the reader has read the store once
}

// feedReader reads the store for a feed. Only its goroutine uses it.
type feedReader struct {
	*feed

	seen    map[string]string            // the last state of each session
	labels  map[string]map[string]string // of each session
	pending map[string]belay.Approval
	read    time.Time // the last time the store was read
	ready   chan struct{}
}

// follower is one client.
type follower struct {
	token  *Token
	events chan frame
	missed int // how many events had no room
}

func newFeed(s *Server) *feed { return &feed{s: s, followers: make(map[*follower]bool)} }

// feedID returns the id of events that were read at a time.
func feedID(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }

type allEventsIn struct {
	After string `json:"after,omitempty" in:"query" pattern:"^[0-9]{0,15}$" jsonschema:"the id of the last event that you have; the snapshot then has the sessions that changed since. The header Last-Event-ID wins"`
}

func allEvents(ctx context.Context, s *Server, q *request, in *allEventsIn) error {
	after := in.After
	if last := q.r.Header.Get("Last-Event-ID"); last != "" {
		after = last
	}
	var since time.Time
	if after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil || n < 0 {
			return problem(http.StatusBadRequest, codes.CursorInvalid, "the id %.80q is invalid: use the id of an event of this stream", after)
		}
		since = time.UnixMilli(n).Add(-feedOverlap)
	}
	return s.streamEvents(ctx, q, func(ctx context.Context, send func(frame) bool) error {
		f := &follower{token: q.token, events: make(chan frame, mostWaiting)}
		ready := s.feed.follow(f)
		defer s.feed.leave(f)
		select {
		case <-ready: // changes from now on are sent, so the snapshot that is read next misses nothing
		case <-ctx.Done():
			return nil
		}
		began := time.Now()
		first, err := s.snapshot(ctx, q, since)
		if err != nil {
			return err
		}
		if !send(frame{id: feedID(began), event: "snapshot", data: first}) {
			return nil
		}
		for {
			select {
			case e := <-f.events:
				if n := s.feed.missedBy(f); n > 0 && !send(frame{event: eventMissed, data: api.Missed{Missed: n}}) {
					return nil
				}
				if !send(e) {
					return nil
				}
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// snapshot reads what is open, and what changed since a time.
func (s *Server) snapshot(ctx context.Context, q *request, since time.Time) (api.Snapshot, error) {
	out := api.Snapshot{Sessions: []api.FeedEvent{}, Approvals: []belay.Approval{}}
	filter := belay.SessionFilter{Labels: q.token.Labels, Open: since.IsZero()}
	for info, err := range s.store.Sessions(ctx, filter) {
		if err != nil {
			return out, err
		}
		if !since.IsZero() && info.Changed.Before(since) && info.State.Turn == nil {
			continue
		}
		if inspect.IsChild(info.ID) {
			continue
		}
		if len(out.Sessions) == mostSnapshot {
			out.Truncated = true
			break
		}
		out.Sessions = append(out.Sessions, feedEventOf(&info))
	}
	seen := s.visible(q)
	for a, err := range s.store.Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
		if err != nil {
			return out, err
		}
		if ok, err := seen.sees(ctx, a.Session); err != nil {
			return out, err
		} else if ok {
			out.Approvals = append(out.Approvals, a)
		}
	}
	return out, nil
}

// feedEventOf describes the present state of a session.
func feedEventOf(info *belay.SessionInfo) api.FeedEvent {
	e := api.FeedEvent{Session: info.ID, Title: info.Title, Agent: info.State.Agent, State: inspect.StateOf(*info), Time: info.Changed}
	if open := info.State.Turn; open != nil {
		if e.Turn = open.ID; open.Parked {
			e.Reason = belay.EndParked
		}
		return e
	}
	if e.Reason = info.State.Last; info.State.Ending != nil {
		e.By, e.Why = info.State.Ending.By, info.State.Ending.Why
	}
	return e
}

// follow adds a client. The first client starts the reader. The returned channel is closed
// when the client gets all changes.
func (f *feed) follow(one *follower) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers[one] = true
	if f.stop != nil {
		return f.ready
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop, f.ready = cancel, make(chan struct{})
	go (&feedReader{feed: f, labels: make(map[string]map[string]string), ready: f.ready}).run(ctx) // ends when the last client leaves
	return f.ready
}

// leave removes a client. The last client stops the reader.
func (f *feed) leave(one *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followers, one)
	if len(f.followers) == 0 && f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// missedBy returns how many events a client missed since the last call.
func (f *feed) missedBy(one *follower) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := one.missed
	one.missed = 0
	return n
}

// run reads the store until ctx ends.
func (f *feedReader) run(ctx context.Context) {
	stirred := make(chan struct{}, 1)
	go func() { // ends with ctx
		for e := range f.s.host.Watch(ctx, nil) {
			if slices.Contains(feedEventKinds, string(e.Kind)) && e.Depth == 0 {
				select {
				case stirred <- struct{}{}:
				default:
				}
			}
		}
	}()
	tick := time.NewTicker(feedPoll)
	defer tick.Stop()
	for {
		if err := f.poll(ctx); err != nil && ctx.Err() == nil {
			f.s.log.WarnContext(ctx, "cannot read what changed: retrying", "error", err)
		}
		select {
		case <-tick.C:
		case <-stirred:
		case <-ctx.Done():
			return
		}
	}
}

// poll reads the sessions that changed, and then the pending approvals. It sends an event for
// each difference to the last time, those of approvals first. So a client learns of a decision
// before it learns how the turn went on.
func (f *feedReader) poll(ctx context.Context) error {
	now := time.Now()
	first := f.read.IsZero()
	if first || len(f.seen) > mostSeen { // a forgotten session that changes counts as new
		f.seen = make(map[string]string)
		clear(f.labels)
	}
	var changed []belay.SessionInfo
	for info, err := range f.s.store.Sessions(ctx, belay.SessionFilter{}) {
		if err != nil {
			return err
		}
		if info.Changed.Before(f.read.Add(-feedOverlap)) || first && len(changed) >= mostSnapshot {
			break // the last changed sessions come first
		}
		if !inspect.IsChild(info.ID) {
			changed = append(changed, info)
		}
	}
	if err := f.approvals(ctx, first, now); err != nil {
		return err
	}
	for i := range changed {
		f.session(&changed[i], first, now)
	}
	if f.read = now; first {
		close(f.ready)
	}
	return nil
}

// session sends an event if the turn of a session has begun or ended.
func (f *feedReader) session(info *belay.SessionInfo, first bool, now time.Time) {
	f.labels[info.ID] = info.Labels
	state := strconv.Itoa(info.State.Turns) + " " + string(info.State.Last)
	kind := "turn_end"
	if open := info.State.Turn; open != nil {
		state = strconv.Itoa(info.State.Turns) + " " + open.ID + " " + strconv.FormatBool(open.Parked)
		if !open.Parked {
			kind = "turn_start"
		}
	}
	before, known := f.seen[info.ID]
	f.seen[info.ID] = state
	if first || before == state || !known && info.State.Turns == 0 {
		return
	}
	f.send(info.Labels, frame{id: feedID(now), event: kind, data: feedEventOf(info)})
}

// approvals sends events for approvals that were requested or decided.
func (f *feedReader) approvals(ctx context.Context, first bool, now time.Time) error {
	pending := make(map[string]belay.Approval)
	for a, err := range f.s.store.Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
		if err != nil {
			return err
		}
		pending[a.ID] = a
		if _, known := f.pending[a.ID]; !known && !first {
			if err := f.sendApproval(ctx, "approval_requested", a, now); err != nil {
				return err
			}
		}
	}
	for id, a := range f.pending {
		if _, still := pending[id]; still {
			continue
		}
		for decided, err := range f.s.store.Approvals(ctx, belay.ApprovalFilter{Session: a.Session}) {
			if err != nil {
				return err
			}
			if decided.ID == id {
				a = decided
			}
		}
		if err := f.sendApproval(ctx, "approval_decided", a, now); err != nil {
			return err
		}
	}
	f.pending = pending
	return nil
}

func (f *feedReader) sendApproval(ctx context.Context, kind string, a belay.Approval, now time.Time) error {
	root := inspect.ParentOf(a.Session)
	labels, known := f.labels[root]
	if !known {
		info, _, err := inspect.FindSession(ctx, f.s.store, root)
		if err != nil {
			return err
		}
		labels = info.Labels
		f.labels[root] = labels
	}
	f.send(labels, frame{id: feedID(now), event: kind, data: api.FeedEvent{Session: a.Session, Turn: a.Turn, Time: now, Approval: &a}})
	return nil
}

// send gives an event to the clients that may see it. It never waits for a client.
func (f *feed) send(labels map[string]string, e frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.followers {
		if !one.token.sees(labels) {
			continue
		}
		select {
		case one.events <- e:
		default:
			one.missed++
		}
	}
}
