package belay

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ManageStore is a ListStore that can describe and delete sessions. Neither method needs a
// hold.
type ManageStore interface {
	ListStore
	// Describe changes the title and the labels of a session: see [SessionUpdate.Apply]. It
	// creates the session if it does not exist. It works while another process holds the
	// session. It does not change [SessionInfo.Changed].
	Describe(ctx context.Context, session string, update SessionUpdate) error
	// Delete removes a session and the sessions of its subagents, whose ids begin with its
	// id and a slash. It removes their messages, calls, approvals, grants, queued turns,
	// labels, records of hook runs and waiting jobs.
	//
	// Delete returns ErrNotFound if the session does not exist. It returns ErrHeld and
	// removes nothing if a process holds one of the sessions, if a worker has claimed one of
	// their turns, or if one of their hooks or jobs is running.
	Delete(ctx context.Context, session string) error
}

// SessionUpdate changes the title and the labels of a session.
type SessionUpdate struct {
	// Title is the new title. Nil keeps the old title. An empty string removes it.
	Title *string
	// Labels are added to the labels of the session. An empty value removes a label.
	Labels map[string]string
}

// The limits for titles and labels.
const (
	maxTitle      = 200 // characters
	maxLabels     = 32
	maxLabelName  = 64 // bytes
	maxLabelValue = 256
)

// Apply returns the title and the labels after the update. Stores call it. It returns an
// error in these cases:
//
//   - the title is longer than 200 characters
//   - the session would have more than 32 labels
//   - a label's name is longer than 64 bytes, or its value longer than 256 bytes
//   - a text is not printable UTF-8
func (u SessionUpdate) Apply(title string, labels map[string]string) (string, map[string]string, error) {
	if u.Title != nil {
		title = strings.TrimSpace(*u.Title)
		switch {
		case !printable(title):
			return "", nil, errors.New("the title is invalid: use one line of printable UTF-8")
		case utf8.RuneCountInString(title) > maxTitle:
			return "", nil, fmt.Errorf("the title has %d characters: at most %d are allowed", utf8.RuneCountInString(title), maxTitle)
		}
	}
	merged := maps.Clone(labels)
	if merged == nil {
		merged = make(map[string]string)
	}
	for name, value := range u.Labels {
		if err := checkLabel(name, value); err != nil {
			return "", nil, err
		}
		if merged[name] = value; value == "" {
			delete(merged, name)
		}
	}
	if len(merged) > maxLabels {
		return "", nil, fmt.Errorf("the session would have %d labels: at most %d are allowed", len(merged), maxLabels)
	}
	if len(merged) == 0 {
		merged = nil
	}
	return title, merged, nil
}

// checkLabel returns an error if a label is invalid.
func checkLabel(name, value string) error {
	switch {
	case name == "":
		return errors.New("a label has no name")
	case len(name) > maxLabelName:
		return fmt.Errorf("the name of label %.20q… has %d bytes: at most %d are allowed", name, len(name), maxLabelName)
	case !printable(name) || strings.Contains(name, "="):
		return fmt.Errorf("the name of label %q is invalid: use printable UTF-8 without =", name)
	case len(value) > maxLabelValue:
		return fmt.Errorf("the value of label %q has %d bytes: at most %d are allowed", name, len(value), maxLabelValue)
	case !printable(value):
		return fmt.Errorf("the value of label %q is not printable UTF-8", name)
	}
	return nil
}

// printable reports whether a text is UTF-8 without control characters.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// errNoManageStore says that the store cannot describe or delete sessions.
var errNoManageStore = errors.New("belay: the store cannot describe or delete sessions: use store/memstore, store/sqlite or store/postgres")

// Describe changes the title and the labels of the session: see [SessionUpdate]. You can
// call it at any time, also while a turn runs. Before the first turn it creates the
// session. The store must be a [ManageStore].
func (s *Session) Describe(ctx context.Context, update SessionUpdate) error {
	if s.id == "" {
		return errors.New("describe session: the session id is empty: set one")
	}
	store, ok := s.agent.store.(ManageStore)
	if !ok {
		return fmt.Errorf("describe session %q: %w", s.id, errNoManageStore)
	}
	return store.Describe(ctx, s.id, update)
}

// copyLabels copies the labels of this session to another one.
func (s *Session) copyLabels(ctx context.Context, to string) error {
	store, ok := s.agent.store.(ManageStore)
	if !ok {
		return nil
	}
	for info, err := range store.Sessions(ctx, SessionFilter{ID: s.id}) {
		switch {
		case err != nil:
			return err
		case info.ID != s.id:
			continue
		case len(info.Labels) == 0:
			return nil
		}
		return store.Describe(ctx, to, SessionUpdate{Labels: info.Labels})
	}
	return nil
}

// ErrCursor says that a cursor or a position is invalid. Use the result of
// [SessionInfo.Cursor] or an [Event.Position].
var ErrCursor = errors.New("belay: the cursor or position is invalid: use the result of SessionInfo.Cursor, or an Event.Position")

// Cursor returns the position of the session in a listing, for [SessionFilter.After]. It is
// an opaque text that needs no escaping in a URL.
func (i SessionInfo) Cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(i.Changed.UnixNano(), 36) + ":" + i.ID))
}

// Start decodes After: the listing begins after the session that was changed at the
// returned time and has the returned id. Both are zero if After is empty. Start returns
// ErrCursor if After is invalid. Stores call it.
func (f SessionFilter) Start() (changed time.Time, id string, err error) {
	if f.After == "" {
		return time.Time{}, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(f.After)
	if err != nil {
		return time.Time{}, "", ErrCursor
	}
	number, id, found := strings.Cut(string(text), ":")
	nanos, err := strconv.ParseInt(number, 36, 64)
	if err != nil || !found || id == "" || !utf8.ValidString(id) {
		return time.Time{}, "", ErrCursor
	}
	return time.Unix(0, nanos), id, nil
}
