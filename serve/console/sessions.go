package console

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/a-h/templ"

	"github.com/belay-run/belay/serve/api"
)

// sessionStates are the values of the filter.
var sessionStates = []string{"running", "waiting", "failed", "idle"}

// sessionFilter is what the user typed into the filter of the sessions.
type sessionFilter struct {
	State, Agent, Label, Text, After string
	Children                         bool
}

// path returns the address of the page with this filter.
func (f sessionFilter) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"state": f.State, "agent": f.Agent, "label": f.Label, "text": f.Text, "after": f.After} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Children {
		q.Set("children", "true")
	}
	if len(q) == 0 {
		return "/sessions"
	}
	return "/sessions?" + q.Encode()
}

// from returns the filter that begins after a session.
func (f sessionFilter) from(after string) sessionFilter {
	f.After = after
	return f
}

// isSet reports whether the filter leaves something out.
func (f sessionFilter) isSet() bool { return f.State+f.Agent+f.Label+f.Text != "" }

// sessionsView is what the page of sessions shows.
type sessionsView struct {
	Filter sessionFilter
	List   api.SessionList
	Agents []string
}

func sessionsPage(ctx context.Context, v *visit) (templ.Component, error) {
	f := sessionFilter{State: v.query("state"), Agent: v.query("agent"), Label: v.query("label"), Text: v.query("text"), After: v.query("after"), Children: v.query("children") == "true"}
	in := api.ListSessions{State: f.State, Agent: f.Agent, Text: f.Text, After: f.After, Children: f.Children, Limit: 50}
	if f.Label != "" {
		name, value, _ := strings.Cut(f.Label, "=")
		in.Label = map[string]string{name: value}
	}
	list, err := v.ListSessions(ctx, in)
	if err != nil {
		return nil, err
	}
	agents, err := v.agents(ctx)
	if err != nil {
		return nil, err
	}
	return sessionList(v, &sessionsView{Filter: f, List: list, Agents: agents}), nil
}

// agents returns the names of the agents.
func (v *visit) agents(ctx context.Context) ([]string, error) {
	models, err := v.ListModels(ctx) // it lists the agents with the one of the settings
	var names []string
	for _, m := range models.Data {
		names = append(names, m.ID)
	}
	return names, err
}

// nameOf returns the title of a session, or its id.
func nameOf(s *api.Session) string { return cmp.Or(strings.TrimSpace(s.Title), s.ID) }

// tone returns the colour of a state: run, wait, bad or empty.
func tone(state string) string {
	switch state {
	case "running", "new":
		return "run"
	case "parked", "waiting":
		return "wait"
	case "error", "interrupted", "blocked", "limit", "failed", "denied":
		return "bad"
	case "done", "ok":
		return "good"
	default:
		return ""
	}
}
