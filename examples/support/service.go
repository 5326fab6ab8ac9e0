package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/belay-run/belay"
)

// docs:begin service

// Outcome is what the program gets from a turn: structured output.
type Outcome struct {
	Summary  string `json:"summary" maxLength:"200" jsonschema:"for the customer, in one or two sentences"`
	Status   string `json:"status" enum:"solved,waiting,refused"`
	Refunded int    `json:"refunded,omitempty" minimum:"0" jsonschema:"in cents"`
}

type service struct {
	agent     *belay.Agent
	store     belay.ListStore
	approvers map[string]string // with their passwords
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tickets/{id}", s.message) // put the login of your customers here: see examples/http
	mux.HandleFunc("GET /approvals", s.forApprover(s.questions))
	mux.HandleFunc("POST /approvals", s.forApprover(s.decide))
	return http.NewCrossOriginProtection().Handler(mux)
}

// message runs a turn for a message of a customer.
func (s *service) message(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Text string `json:"text"`
	}
	if read(w, r, &in) {
		outcome, turn, err := belay.Answer[Outcome](r.Context(), s.agent.Session("ticket:"+r.PathValue("id")), in.Text)
		reply(w, outcome, turn, err)
	}
}

// questions lists what waits for a decision, with the inputs of the calls.
func (s *service) questions(w http.ResponseWriter, r *http.Request, _ string) {
	open := []belay.Question{}
	for question, err := range belay.Questions(r.Context(), s.store, belay.ApprovalFilter{}) {
		if err != nil {
			reply(w, nil, nil, err)
			return
		}
		open = append(open, question)
	}
	reply(w, open, nil, nil)
}

// decide records a decision and continues the turn that waited for it.
func (s *service) decide(w http.ResponseWriter, r *http.Request, approver string) {
	var body struct {
		Approval, Hash, Reason string
		Allow                  bool
	}
	if !read(w, r, &body) {
		return
	}
	// Who decides, and for which calls, never comes from the request.
	decision := belay.Decision{Approval: body.Approval, Hash: body.Hash, Allow: body.Allow, Reason: body.Reason, By: approver}
	approval, err := s.agent.Decide(r.Context(), decision)
	late := errors.Is(err, belay.ErrDecided) || errors.Is(err, belay.ErrExpired)
	if err != nil && !late {
		reply(w, nil, nil, err)
		return
	}
	// A late decision does not count. But its turn must not stay parked: an expired approval denies
	// the call, and a process may have ended between the first decision and the turn.
	ctx := context.WithoutCancel(r.Context()) // the turn is the customer's: it continues if the approver leaves
	outcome, turn, resumed := s.resume(ctx, approval.Session)
	switch {
	case late && resumed != nil && !parked(turn) && !errors.Is(resumed, belay.ErrNoTurn):
		reply(w, nil, nil, errors.Join(err, resumed))
	case late:
		reply(w, nil, nil, err)
	case errors.Is(resumed, belay.ErrNoTurn):
		reply(w, map[string]string{"status": "continued", "summary": "Another request has continued the turn with this decision."}, nil, nil)
	default:
		reply(w, outcome, turn, resumed)
	}
}

// resume continues the turn of a session. If another request is running the turn, it may not know
// the newest decision. So resume waits until that request has ended, at most a minute.
func (s *service) resume(ctx context.Context, session string) (Outcome, *belay.Turn, error) {
	for tries := 1; ; tries++ {
		outcome, turn, err := belay.ResumeAnswer[Outcome](ctx, s.agent.Session(session))
		busy := errors.Is(err, belay.ErrBusy) || errors.Is(err, belay.ErrHeld)
		if busy && tries == 600 {
			return outcome, turn, fmt.Errorf("the decision is stored, but the ticket is busy: send the decision again to continue its turn: %w", err)
		}
		if !busy {
			return outcome, turn, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return outcome, turn, errors.Join(err, context.Cause(ctx))
		}
	}
}

// docs:end service

func (s *service) forApprover(do func(w http.ResponseWriter, r *http.Request, approver string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth() // put your login here
		if want, ok := s.approvers[name]; !ok || password != want {
			w.Header().Set("WWW-Authenticate", `Basic realm="approvals"`)
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		do(w, r, name)
	}
}

// parked reports whether a turn waits for a decision.
func parked(turn *belay.Turn) bool { return turn != nil && turn.Reason == belay.EndParked }

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil || json.Unmarshal(data, into) != nil {
		http.Error(w, "the body is not the JSON that this address expects", http.StatusBadRequest)
		return false
	}
	return true
}

// reply sends a value, or the status for an error.
func reply(w http.ResponseWriter, value any, turn *belay.Turn, err error) {
	status := http.StatusOK
	switch {
	case parked(turn):
		status, value, err = http.StatusAccepted, map[string]string{"status": "parked", "summary": "A colleague must approve this."}, nil
	case errors.Is(err, belay.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, belay.ErrDecided), errors.Is(err, belay.ErrWrongHash), errors.Is(err, belay.ErrExpired), errors.Is(err, belay.ErrParked), errors.Is(err, belay.ErrBusy), errors.Is(err, belay.ErrHeld):
		status = http.StatusConflict
	case err != nil:
		status = http.StatusInternalServerError
	}
	if err != nil {
		http.Error(w, err.Error(), status) // send a text of your own if clients must not see details
		return
	}
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client has possibly left
}
