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

// feedEvent is one event of /v1/events. It describes the present state, so getting it twice
// does no harm.
type feedEvent struct {
	Session string          `json:"session"`
	Title   string          `json:"title,omitempty"`
	Turn    string          `json:"turn,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	State   string          `json:"state,omitempty" jsonschema:"running, parked, interrupted, done, or how the last turn ended"`
	Reason  belay.EndReason `json:"reason,omitempty" jsonschema:"why the turn ended"`
	Why     string          `json:"why,omitempty" jsonschema:"what went wrong"`
	By      string          `json:"by,omitempty" jsonschema:"who blocked the turn"`
	Time    time.Time       `json:"time"`
	// Approval is set for approval_requested and approval_decided.
	Approval *belay.Approval `json:"approval,omitempty"`
}

// snapshot is the first event of /v1/events: everything that is open, and the sessions that
// changed since the cursor.
type snapshot struct {
	Sessions  []feedEvent      `json:"sessions"`
	Approvals []belay.Approval `json:"approvals" jsonschema:"the pending approvals"`
	Truncated bool             `json:"truncated,omitempty" jsonschema:"more sessions changed than are listed: list the sessions"`
}

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

	seen    map[string]string // the last state of each session
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
	return s.streamEvents(ctx, q, "", func(ctx context.Context, send func(frame) bool) error {
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
				if n := s.feed.missedBy(f); n > 0 && !send(frame{event: eventMissed, data: missed{n}}) {
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
func (s *Server) snapshot(ctx context.Context, q *request, since time.Time) (snapshot, error) {
	out := snapshot{Sessions: []feedEvent{}, Approvals: []belay.Approval{}}
	filters := []belay.SessionFilter{{Labels: q.token.Labels, Open: true}}
	if !since.IsZero() {
		filters = append(filters, belay.SessionFilter{Labels: q.token.Labels, Since: since})
	}
	known := make(map[string]bool)
	for _, filter := range filters {
		for info, err := range s.pages(ctx, filter, mostSnapshot+1) {
			if err != nil {
				return out, err
			}
			if inspect.IsChild(info.ID) || known[info.ID] {
				continue
			}
			if len(out.Sessions) == mostSnapshot {
				out.Truncated = true
				break
			}
			known[info.ID] = true
			out.Sessions = append(out.Sessions, feedEventOf(&info, q.token))
		}
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

// feedEventOf describes the present state of a session for a token.
func feedEventOf(info *belay.SessionInfo, token *Token) feedEvent {
	e := feedEvent{Session: info.ID, Title: info.Title, Agent: info.State.Agent, State: inspect.StateOf(*info), Time: info.Changed}
	if open := info.State.Turn; open != nil {
		if e.Turn = open.ID; open.Parked {
			e.Reason = belay.EndParked
		}
		return e
	}
	if e.Reason = info.State.Last; info.State.Ending != nil {
		e.By, e.Why = info.State.Ending.By, token.why(info.State.Last, info.State.Ending.Why)
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
	go (&feedReader{feed: f, ready: f.ready}).run(ctx) // ends when the last client leaves
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
		began := time.Now()
		if err := f.poll(ctx); err != nil && ctx.Err() == nil {
			f.s.log.WarnContext(ctx, "cannot read what changed: retrying", "error", err)
		}
		select { // many turns must not make the feed read all the time
		case <-time.After(min(4*time.Since(began), feedPoll)):
		case <-ctx.Done():
			return
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
	}
	filter := belay.SessionFilter{Limit: mostSnapshot}
	if !first {
		filter = belay.SessionFilter{Since: f.read.Add(-feedOverlap)}
	}
	var changed []belay.SessionInfo
	for info, err := range f.s.store.Sessions(ctx, filter) {
		if err != nil {
			return err
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
	f.send(info.Labels, func(token *Token) frame {
		return frame{id: feedID(now), event: kind, data: feedEventOf(info, token)}
	})
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
		for decided, err := range f.s.store.Approvals(ctx, belay.ApprovalFilter{ID: id}) {
			if err != nil {
				return err
			}
			a = decided
		}
		if err := f.sendApproval(ctx, "approval_decided", a, now); err != nil {
			return err
		}
	}
	f.pending = pending
	return nil
}

// sendApproval reads the labels of the session each time, because somebody can change them.
func (f *feedReader) sendApproval(ctx context.Context, kind string, a belay.Approval, now time.Time) error {
	info, _, err := inspect.FindSession(ctx, f.s.store, inspect.ParentOf(a.Session))
	if err != nil {
		return err
	}
	f.send(info.Labels, func(*Token) frame {
		return frame{id: feedID(now), event: kind, data: feedEvent{Session: a.Session, Turn: a.Turn, Time: now, Approval: &a}}
	})
	return nil
}

// send gives an event to the clients that may see it. It never waits for a client.
func (f *feed) send(labels map[string]string, e func(*Token) frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.followers {
		if !one.token.sees(labels) {
			continue
		}
		select {
		case one.events <- e(one.token):
		default:
			one.missed++
		}
	}
}
