package inspect

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// SessionStore has what describes a session.
type SessionStore interface {
	belay.TurnStore
	belay.ListStore
}

// SessionOf describes a session as listings show it.
func SessionOf(ctx context.Context, store SessionStore, info belay.SessionInfo) (api.Session, error) {
	l := api.Session{
		ID: info.ID, Title: TitleOf(ctx, store, info), State: StateOf(info), Turns: info.State.Turns, Last: info.Last, Labels: info.Labels, Cursor: info.Cursor(),
		Created: info.Created, Changed: info.Changed, Usage: info.State.Spent(), ForkedFrom: info.State.ForkedFrom, Ending: info.State.Ending,
		Position: info.Position(), Agent: info.State.Agent, Model: info.State.Model, Held: info.Held, Reason: info.State.Last, Grants: info.State.Grants,
	}
	if open := info.State.Turn; open != nil {
		l.Turn = &api.OpenTurn{ID: open.ID, Step: open.Step, Text: open.Text, Parked: open.Parked}
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
	var err error
	l.Pending, err = pending(ctx, store, &info)
	return l, err
}

// OpenCalls returns the calls of the last response in the open turn of a session, with their
// results so far. It returns none if no turn is open, if the response has no calls, or if the
// store cannot export sessions.
func OpenCalls(ctx context.Context, store belay.Store, info *belay.SessionInfo) ([]belay.CallRecord, error) {
	exporter, ok := store.(interface {
		Export(ctx context.Context, w io.Writer, session string) error
	})
	if !ok || info.State.Turn == nil || info.Last == 0 {
		return nil, nil
	}
	for m, err := range store.Read(ctx, info.ID, info.Last-1) {
		if err != nil || len(m.Calls()) == 0 {
			return nil, err
		}
	}
	var exported bytes.Buffer
	if err := exporter.Export(ctx, &exported, info.ID); err != nil {
		return nil, err
	}
	var calls []belay.CallRecord
	for lines := json.NewDecoder(&exported); lines.More(); {
		var line struct {
			Call *belay.CallRecord `json:"call"`
		}
		if err := lines.Decode(&line); err != nil {
			return nil, fmt.Errorf("read the calls of session %s: %w", info.ID, err)
		}
		if line.Call != nil && line.Call.Message == info.Last {
			calls = append(calls, *line.Call)
		}
	}
	return calls, nil
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

// ParentOf returns the id of the session in which a subagent was started. If that session
// also belongs to a subagent, ParentOf returns its parent, and so on. It returns the id of
// any other session unchanged.
func ParentOf(id string) string {
	parent, _, _ := strings.Cut(id, "/")
	return parent
}

// NewSessionID returns an id that begins with the date and is short enough to type.
func NewSessionID(now time.Time) string {
	return now.Format("20060102") + "-" + strings.ToLower(rand.Text()[:5])
}

// pending returns how many approvals and questions the open turn of a session waits for, with
// those of its subagents. For a session that is not parked, it reads nothing.
func pending(ctx context.Context, store belay.ListStore, info *belay.SessionInfo) (int, error) {
	if info.State.Turn == nil || !info.State.Turn.Parked {
		return 0, nil
	}
	open := []belay.SessionInfo{*info}
	for child, err := range store.Sessions(ctx, belay.SessionFilter{Prefix: info.ID + "/", Open: true}) {
		if err != nil {
			return 0, err
		}
		open = append(open, child)
	}
	n, now := 0, time.Now()
	for i := range open {
		for a, err := range store.Approvals(ctx, belay.ApprovalFilter{Session: open[i].ID, Pending: true}) {
			if err != nil {
				return 0, err
			}
			if a.Turn == open[i].State.Turn.ID && !IsExpired(&a, now) {
				n++
			}
		}
	}
	return n, nil
}
