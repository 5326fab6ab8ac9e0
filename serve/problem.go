package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/serve/api"
)

// Problem is the body of every error: a problem document as in RFC 9457.
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
	api.Problem

	retry int // seconds for the header Retry-After; 0: none
}

// problem makes a problem document.
func problem(status int, code codes.Code, format string, args ...any) *Problem {
	p := &Problem{Problem: api.Problem{Status: status, Code: code, Detail: fmt.Sprintf(format, args...), Title: http.StatusText(status), Type: "/v1/docs#" + string(code)}}
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
	if status, code, known := api.CodeOf(err); known != nil {
		if token.isTenant() {
			err = known
		}
		return problem(status, code, "%s", strings.TrimPrefix(strings.ReplaceAll(err.Error(), ": belay: ", ": "), "belay: "))
	}
	if ctx.Err() == nil {
		s.log.ErrorContext(ctx, "a request failed", "error", err)
	}
	return problem(http.StatusInternalServerError, codes.ServerFailed, "the server failed: its log has the reason")
}

// send writes the problem as the response. The OpenAI endpoints have another form of errors.
func (p *Problem) send(w http.ResponseWriter) {
	if p.retry > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(p.retry))
	}
	if p.Status == http.StatusUnauthorized { // RFC 9110 requires it
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if _, ok := w.(openAIWriter); ok {
		p.sendOpenAI(w)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) //nolint:errchkjson // the client has left
}
