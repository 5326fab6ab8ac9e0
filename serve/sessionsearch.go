package serve

import (
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// sessionSearch selects sessions by what no index has: the state, the agent and the text. It
// bounds the work of one request. The stores find open sessions by an index, so a search for
// running or waiting sessions looks only at those.
type sessionSearch struct {
	state, agent, text string // text is in lower case
	work               int
	last               string // the cursor of the last session that was looked at
}

// Looking at a session costs 1, and reading its first message firstCost. One request may cost
// mostWork, which is about 50 ms.
const (
	firstCost = 5
	mostWork  = 2000
)

// titleLength is how many characters of a title or a first message a list shows.
const titleLength = 200

func newSessionSearch(in *api.ListSessions) *sessionSearch {
	return &sessionSearch{state: in.State, agent: in.Agent, text: strings.ToLower(in.Text), last: in.After}
}

// isSet reports whether the search selects anything.
func (f *sessionSearch) isSet() bool { return f.state != "" || f.agent != "" || f.text != "" }

// onlyOpen reports whether only sessions with an open turn can match.
func (f *sessionSearch) onlyOpen() bool { return f.state == "running" || f.state == "waiting" }

// pageSize returns how many sessions to read at once.
func (f *sessionSearch) pageSize(limit int) int {
	if f.isSet() {
		return max(limit, 200)
	}
	return limit
}

// exhausted reports whether the request has cost enough.
func (f *sessionSearch) exhausted() bool { return f.isSet() && f.work >= mostWork }

// skip counts a session that is not listed.
func (f *sessionSearch) skip(info *belay.SessionInfo) {
	f.work++
	f.last = info.Cursor()
}

// matches reports whether a session is selected.
func (f *sessionSearch) matches(ctx context.Context, store belay.Store, info *belay.SessionInfo) bool {
	f.skip(info)
	switch {
	case f.state != "" && f.state != stateGroup(info), f.agent != "" && f.agent != info.State.Agent:
		return false
	case f.text == "" || strings.Contains(strings.ToLower(info.Title), f.text):
		return true
	case info.Last == 0:
		return false
	}
	f.work += firstCost
	title := inspect.TitleOf(ctx, store, belay.SessionInfo{ID: info.ID})
	return strings.Contains(strings.ToLower(inspect.Beginning(title, textLength)), f.text)
}

// textLength is how many characters of a first message a search looks at.
const textLength = 2000

// stateGroup returns the group of states that a session belongs to.
func stateGroup(info *belay.SessionInfo) string {
	switch state := inspect.StateOf(*info); state {
	case "running":
		return "running"
	case "parked":
		return "waiting"
	case "interrupted", string(belay.EndError):
		return "failed"
	default:
		return "idle"
	}
}

// listed describes a session for a list.
func (s *Server) listed(ctx context.Context, info *belay.SessionInfo) (api.Session, error) {
	one, err := inspect.SessionOf(ctx, s.store, *info)
	one.Title = inspect.Beginning(one.Title, titleLength)
	return one, err
}
