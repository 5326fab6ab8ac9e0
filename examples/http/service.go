package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/belay-run/belay"
)

// docs:begin service

type service struct {
	agent *belay.Agent
	store belay.ListStore
	users map[string]string // with their passwords
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.forUser(func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = w.Write(page) }))
	mux.HandleFunc("GET /sessions", s.forUser(s.list))
	mux.HandleFunc("POST /sessions/{id}/messages", s.forUser(s.post))
	mux.HandleFunc("GET /sessions/{id}/events", s.forUser(s.events))
	return http.NewCrossOriginProtection().Handler(mux) // other sites cannot post in the name of a user
}

// forUser logs the user in. Put your own login here.
func (s *service) forUser(do func(w http.ResponseWriter, r *http.Request, user string)) http.HandlerFunc {
	validID := regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)
	return func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch want, ok := s.users[user]; {
		case !ok || password != want:
			w.Header().Set("WWW-Authenticate", `Basic realm="example"`)
			http.Error(w, "log in first", http.StatusUnauthorized)
		case !validID.MatchString(r.PathValue("id")):
			http.Error(w, "a session id has letters, digits, - and _", http.StatusBadRequest)
		default:
			do(w, r, user)
		}
	}
}

// session has the user in its id, so that no user can name the session of another user.
func (s *service) session(r *http.Request, user string) *belay.Session {
	return s.agent.Session(user + ":" + r.PathValue("id"))
}

// list returns the user's sessions, the last changed one first.
func (s *service) list(w http.ResponseWriter, r *http.Request, user string) {
	ids := []string{}
	for info, err := range s.store.Sessions(r.Context(), belay.SessionFilter{Labels: map[string]string{"user": user}, Limit: 100}) {
		if err != nil {
			reply(w, nil, err)
			return
		}
		ids = append(ids, strings.TrimPrefix(info.ID, user+":"))
	}
	reply(w, ids, nil)
}

// post runs a turn, and returns its answer. The turn belongs to the request: a client that leaves aborts it.
func (s *service) post(w http.ResponseWriter, r *http.Request, user string) {
	var in map[string]string
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20)) // to its end: only then net/http notices that a client leaves
	if err != nil || json.Unmarshal(data, &in) != nil || in["text"] == "" {
		http.Error(w, `the body must be {"text": "…"}`, http.StatusBadRequest)
		return
	}
	session := s.session(r, user)
	var turn *belay.Turn
	if err = session.Describe(r.Context(), belay.SessionUpdate{Labels: map[string]string{"user": user}}); err == nil {
		turn, err = session.Turn(r.Context(), in["text"])
	}
	reply(w, turn, err)
}

// events streams the events of a session. It only watches: a lost connection does not abort the turn.
func (s *service) events(w http.ResponseWriter, r *http.Request, user string) {
	after := cmp.Or(r.Header.Get("Last-Event-ID"), "0") // a browser that connects again sends the last id that it got
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).Flush()
	for event, err := range s.agent.Watch(r.Context(), &belay.WatchOptions{Session: user + ":" + r.PathValue("id"), After: after}) {
		if errors.Is(err, belay.ErrCursor) {
			fmt.Fprint(w, "event: failed\ndata: \"the Last-Event-ID is invalid\"\n\n")
		}
		data, wrong := json.Marshal(event)
		if err != nil || wrong != nil {
			return // the browser connects again, and continues after the last event
		}
		fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", event.Position, event.Kind, data)
		if http.NewResponseController(w).Flush() != nil {
			return // the client has left
		}
	}
}

// docs:end service

// reply sends a value as JSON, or the status of an error without the details of the error.
func reply(w http.ResponseWriter, value any, err error) {
	data, wrong := json.Marshal(value)
	switch {
	case errors.Is(err, belay.ErrBusy):
		http.Error(w, "the session runs a turn: wait for its end", http.StatusConflict)
	case errors.Is(err, belay.ErrClosed):
		http.Error(w, "the service stops: try again soon", http.StatusServiceUnavailable)
	case err != nil || wrong != nil:
		http.Error(w, "the request failed", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data) // the client has possibly left
	}
}
