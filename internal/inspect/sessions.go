package inspect

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Session is one session in a listing.
type Session struct {
	ID      string            `json:"id"`
	Title   string            `json:"title"`
	State   string            `json:"state"`
	Turns   int               `json:"turns"`
	Last    int64             `json:"messages"`
	Created time.Time         `json:"created"`
	Changed time.Time         `json:"changed"`
	Usage   belay.Usage       `json:"usage"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Cursor lists the sessions after this one.
	Cursor string `json:"cursor"`
	// ForkedFrom is the session and message that this session was forked from.
	ForkedFrom *belay.ForkPoint `json:"forked_from,omitempty"`
	// Ending says why the last turn ended.
	Ending *belay.Ending `json:"ending,omitempty"`
}

// SessionOf describes a session as listings show it.
func SessionOf(ctx context.Context, store belay.TurnStore, info belay.SessionInfo) (Session, error) {
	l := Session{
		ID: info.ID, Title: TitleOf(ctx, store, info), State: StateOf(info), Turns: info.State.Turns, Last: info.Last, Labels: info.Labels, Cursor: info.Cursor(),
		Created: info.Created, Changed: info.Changed, Usage: info.State.Spent(), ForkedFrom: info.State.ForkedFrom, Ending: info.State.Ending,
	}
	if info.Last == 0 && info.State.Turn == nil {
		queued, err := store.Queued(ctx, info.ID)
		if err != nil {
			return l, err
		}
		if len(queued) > 0 {
			l.State, l.Title = "waiting", cmp.Or(info.Title, queued[0].Text)
		}
	}
	return l, nil
}

// FindSession finds the session with exactly this id. It reports false if there is none.
func FindSession(ctx context.Context, store belay.ListStore, id string) (belay.SessionInfo, bool, error) {
	for info, err := range store.Sessions(ctx, belay.SessionFilter{ID: id}) {
		if err != nil {
			return belay.SessionInfo{}, false, err
		}
		if info.ID == id {
			return info, true, nil
		}
	}
	return belay.SessionInfo{}, false, nil
}

// TitleOf returns the title of a session, or else its first message.
func TitleOf(ctx context.Context, store belay.Store, info belay.SessionInfo) string {
	if info.Title != "" {
		return info.Title
	}
	return firstWords(ctx, store, info.ID)
}

// firstWords returns the user's first message in a session, as the user typed it.
func firstWords(ctx context.Context, store belay.Store, id string) string {
	for m, err := range store.Read(ctx, id, 0) {
		if err != nil {
			return ""
		}
		if m.Kind == belay.KindUser && m.PreModifiedText != nil {
			return *m.PreModifiedText
		}
		if m.Kind == belay.KindUser {
			return m.Text()
		}
	}
	return ""
}

// StateOf returns the state of a session as one word.
func StateOf(info belay.SessionInfo) string {
	switch turn := info.State.Turn; {
	case turn == nil && info.State.Last == belay.EndTurn:
		return "done"
	case turn == nil:
		return cmp.Or(string(info.State.Last), "new")
	case turn.Parked:
		return "parked"
	case info.Held:
		return "running"
	default:
		return "interrupted"
	}
}

// IsChild reports whether a session belongs to a subagent. The id of such a session is the
// parent's id, a slash, and more.
func IsChild(id string) bool { return strings.Contains(id, "/") }

// ParentOf returns the parent session of a subagent's session. It returns the id of any
// other session unchanged.
func ParentOf(id string) string {
	parent, _, _ := strings.Cut(id, "/")
	return parent
}

// NewSessionID returns an id that begins with the date and is short enough to type.
func NewSessionID(now time.Time) string {
	return now.Format("20060102") + "-" + strings.ToLower(rand.Text()[:5])
}
