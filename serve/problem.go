package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
)

// Problem is the body of every error: a problem document as in RFC 9457.
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
	// Type is the address of the explanation of Code, on this server.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong with this request.
	Detail string `json:"detail"`
	// Code is stable. docs/reference/diagnostics.md explains all codes.
	Code codes.Code `json:"code"`
	// Field is a JSON pointer to the field that is wrong, such as /text.
	Field string `json:"field,omitempty"`

	retry int // seconds for the header Retry-After; 0: none
}

func (p *Problem) Error() string { return p.Detail }

// problem makes a problem document.
func problem(status int, code codes.Code, format string, args ...any) *Problem {
	p := &Problem{Status: status, Code: code, Detail: fmt.Sprintf(format, args...), Title: http.StatusText(status), Type: "/v1/docs#" + string(code)}
	for _, c := range codes.All() {
		if c.Code == code {
			p.Title = strings.TrimSuffix(c.Meaning, ".")
		}
	}
	return p
}

// invalid is the problem of a request with a wrong field.
func invalid(field, format string, args ...any) *Problem {
	p := problem(http.StatusUnprocessableEntity, codes.RequestInvalid, format, args...)
	p.Field = field
	return p
}

// notFound is the problem of something that does not exist, or that the token may not see.
// Both look the same, so that a token learns nothing about the sessions of others.
func notFound(what, id string) *Problem {
	return problem(http.StatusNotFound, codes.RequestNotFound, "there is no %s %q", what, id)
}

// known are the problems of the errors that stores and agents return.
var known = []struct {
	err    error
	status int
	code   codes.Code
}{
	{belay.ErrNotFound, http.StatusNotFound, codes.RequestNotFound},
	{belay.ErrCursor, http.StatusBadRequest, codes.CursorInvalid},
	{belay.ErrHeld, http.StatusConflict, codes.SessionHeld},
	{belay.ErrBusy, http.StatusConflict, codes.SessionHeld},
	{belay.ErrParked, http.StatusConflict, codes.TurnParked},
	{belay.ErrNoTurn, http.StatusConflict, codes.TurnNone},
	{belay.ErrDecided, http.StatusConflict, codes.ApprovalDecided},
	{belay.ErrWrongHash, http.StatusConflict, codes.ApprovalHash},
	{belay.ErrExpired, http.StatusConflict, codes.ApprovalExpired},
	{belay.ErrScope, http.StatusUnprocessableEntity, codes.ApprovalScope},
	{belay.ErrClosed, http.StatusServiceUnavailable, codes.ServerDraining},
}

// problemOf converts an error. It does not send the texts of unexpected errors, because they
// may quote files and addresses of the server: the log has them.
func (s *Server) problemOf(ctx context.Context, err error) *Problem {
	return s.problemFor(ctx, &Token{}, err)
}

// problemFor is problemOf for a token. A token that is limited to labels gets only the text of
// the known error, without the words around it.
func (s *Server) problemFor(ctx context.Context, token *Token, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			if token.isTenant() {
				err = k.err
			}
			return problem(k.status, k.code, "%s", strings.TrimPrefix(strings.ReplaceAll(err.Error(), ": belay: ", ": "), "belay: "))
		}
	}
	if ctx.Err() == nil {
		s.log.ErrorContext(ctx, "a request failed", "error", err)
	}
	return problem(http.StatusInternalServerError, codes.ServerFailed, "the server failed: its log has the reason")
}

// send writes the problem as the response.
func (p *Problem) send(w http.ResponseWriter) {
	if p.retry > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(p.retry))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) //nolint:errchkjson // the client has left
}
