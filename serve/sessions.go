package serve

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/serve/api"
)

// session returns a session that the token may see. A session of another tenant does not
// exist for the token.
func (s *Server) session(ctx context.Context, q *request, id string) (belay.SessionInfo, error) {
	info, found, err := inspect.FindSession(ctx, s.store, id)
	if err != nil {
		return info, err
	}
	if found && inspect.IsChild(id) && len(q.token.Labels) > 0 { // the labels of a subagent's session are those of its parent
		parent, there, err := inspect.FindSession(ctx, s.store, inspect.ParentOf(id))
		if err != nil {
			return info, err
		}
		found, info.Labels = there, parent.Labels
	}
	if !found || !q.token.sees(info.Labels) {
		return belay.SessionInfo{}, notFound("session", id)
	}
	return info, nil
}

// visible remembers which sessions a token may see, while one request lists things of many
// sessions. A stream must not use it for long, because a session can lose its labels.
type visible struct {
	s     *Server
	q     *request
	known map[string]bool
}

func (s *Server) visible(q *request) *visible {
	return &visible{s: s, q: q, known: make(map[string]bool)}
}

// sees reports whether the token may see a session.
func (v *visible) sees(ctx context.Context, id string) (bool, error) {
	if len(v.q.token.Labels) == 0 {
		return true, nil
	}
	root := inspect.ParentOf(id)
	if seen, ok := v.known[root]; ok {
		return seen, nil
	}
	info, found, err := inspect.FindSession(ctx, v.s.store, root)
	if err != nil {
		return false, err
	}
	v.known[root] = found && v.q.token.sees(info.Labels)
	return v.known[root], nil
}

func createSession(ctx context.Context, s *Server, q *request, in *api.CreateSession) (api.Session, error) {
	labels := maps.Clone(in.Labels)
	if labels == nil {
		labels = make(map[string]string)
	}
	for name, value := range q.token.Labels {
		if given, ok := labels[name]; ok && given != value {
			return api.Session{}, invalid("/labels/"+name, "the token is limited to sessions with %s=%s", name, value)
		}
		labels[name] = value
	}
	id := in.ID
	switch {
	case id != "" && len(q.token.Labels) > 0: // otherwise the answer would tell which ids others use
		return api.Session{}, invalid("/id", "the token is limited to labels, so it cannot choose the id of a session: leave it out")
	case id != "":
		if _, found, err := inspect.FindSession(ctx, s.store, id); err != nil || found {
			if found {
				err = problem(409, codeExists, "session %q already exists: choose another id", id)
			}
			return api.Session{}, err
		}
	default:
		var err error
		if id, err = s.newID(ctx); err != nil {
			return api.Session{}, err
		}
	}
	update := belay.SessionUpdate{Labels: labels}
	if in.Title != "" {
		update.Title = &in.Title
	}
	if _, _, err := update.Apply("", nil); err != nil {
		return api.Session{}, invalid("", "%v", err)
	}
	if err := s.store.Describe(ctx, id, update); err != nil {
		return api.Session{}, err
	}
	return readSession(ctx, s, q, &sessionIn{Session: id})
}

// newID returns an id that no session has. Ids are short, so two can be equal by chance.
func (s *Server) newID(ctx context.Context) (string, error) {
	for {
		id := inspect.NewSessionID(time.Now())
		if _, found, err := inspect.FindSession(ctx, s.store, id); err != nil || !found {
			return id, err
		}
	}
}

func listSessions(ctx context.Context, s *Server, q *request, in *api.ListSessions) (api.SessionList, error) {
	out := api.SessionList{Sessions: []api.Session{}}
	filter := belay.SessionFilter{Prefix: in.Prefix, Since: in.Since, Open: in.Open, Labels: maps.Clone(in.Label), After: in.After}
	for name, value := range q.token.Labels {
		if filter.Labels == nil {
			filter.Labels = make(map[string]string)
		}
		if given, ok := filter.Labels[name]; ok && given != value {
			return out, nil
		}
		filter.Labels[name] = value
	}
	search := newSessionSearch(in)
	filter.Open = filter.Open || search.onlyOpen()
	for info, err := range s.pages(ctx, filter, search.pageSize(in.Limit+1)) {
		if err != nil {
			return out, err
		}
		if inspect.IsChild(info.ID) && !in.Children {
			search.skip(&info)
			continue
		}
		if len(out.Sessions) == in.Limit {
			out.Next = search.last
			break
		}
		if search.exhausted() {
			out.Next, out.Partial = search.last, true
			break
		}
		if !search.matches(ctx, s.store, &info) {
			continue
		}
		one, err := s.listed(ctx, &info)
		if err != nil {
			return out, err
		}
		out.Sessions = append(out.Sessions, q.token.session(&info, one))
	}
	return out, nil
}

// pages yields all matching sessions, and reads no more than size sessions at once.
func (s *Server) pages(ctx context.Context, filter belay.SessionFilter, size int) iter.Seq2[belay.SessionInfo, error] {
	filter.Limit = size
	return func(yield func(belay.SessionInfo, error) bool) {
		for {
			n := 0
			for info, err := range s.store.Sessions(ctx, filter) {
				if !yield(info, err) || err != nil {
					return
				}
				filter.After = info.Cursor()
				n++
			}
			if n < size {
				return
			}
		}
	}
}

type sessionIn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
}

func readSession(ctx context.Context, s *Server, q *request, in *sessionIn) (api.Session, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return api.Session{}, err
	}
	out, err := inspect.SessionOf(ctx, s.store, info)
	if err == nil {
		out.Calls, err = inspect.OpenCalls(ctx, s.store, &info)
	}
	return q.token.session(&info, out), err
}

func updateSession(ctx context.Context, s *Server, q *request, in *api.UpdateSession) (api.Session, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return api.Session{}, err
	}
	for name, value := range in.Labels {
		if limit, ok := q.token.Labels[name]; ok && value != limit {
			return api.Session{}, invalid("/labels/"+name, "the token is limited to sessions with %s=%s, so it cannot change this label", name, limit)
		}
	}
	update := belay.SessionUpdate{Title: in.Title, Labels: in.Labels}
	if _, _, err := update.Apply(info.Title, info.Labels); err != nil {
		return api.Session{}, invalid("", "%v", err)
	}
	if err := s.store.Describe(ctx, info.ID, update); err != nil {
		return api.Session{}, err
	}
	return readSession(ctx, s, q, &sessionIn{Session: in.Session})
}

func deleteSession(ctx context.Context, s *Server, q *request, in *sessionIn) (none, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return none{}, err
	}
	return none{}, s.project.Delete(ctx, s.store, info.ID)
}

func forkSession(ctx context.Context, s *Server, q *request, in *api.ForkSession) (api.Session, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return api.Session{}, err
	}
	at := cmp.Or(in.At, info.Last)
	if info.Last == 0 || at > info.Last {
		return api.Session{}, invalid("/at", "the session has only %d messages", info.Last)
	}
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: s.store}) // forking needs no model
	if err != nil {
		return api.Session{}, err
	}
	defer func() { _ = agent.Close(context.WithoutCancel(ctx)) }() // ignore errors: it ran no turn
	id, err := s.newID(ctx)
	if err != nil {
		return api.Session{}, err
	}
	if _, err := agent.Session(info.ID).Fork(ctx, id, at); err != nil {
		return api.Session{}, err
	}
	if inspect.IsChild(info.ID) { // its own labels are those of its parent, and Fork does not know them
		parent, _, err := inspect.FindSession(ctx, s.store, inspect.ParentOf(info.ID))
		if err == nil && len(parent.Labels) > 0 {
			err = s.store.Describe(ctx, id, belay.SessionUpdate{Labels: parent.Labels})
		}
		if err != nil {
			return api.Session{}, errors.Join(err, s.store.Delete(context.WithoutCancel(ctx), id)) // without its labels, nobody would find it
		}
	}
	return readSession(ctx, s, q, &sessionIn{Session: id})
}

func listMessages(ctx context.Context, s *Server, q *request, in *api.ListMessages) (api.MessageList, error) {
	out := api.MessageList{Messages: []*belay.Message{}}
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return out, err
	}
	if in.Newest {
		return s.newestMessages(ctx, &info, in)
	}
	if in.Before != 0 {
		return out, invalid("/before", "before needs newest=true: use after to list from the beginning")
	}
	for m, err := range s.store.Read(ctx, info.ID, in.After) {
		if err != nil {
			return out, err
		}
		if len(out.Messages) == in.Limit {
			out.Next = out.Messages[in.Limit-1].Seq
			break
		}
		if in.NoMedia {
			m = withoutMedia(m)
		}
		out.Messages = append(out.Messages, m)
	}
	return out, nil
}
