package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
)

// Problem is the body of every error: a problem document as in RFC 9457. errors.Is compares
// it with the errors of package belay that have the same code, such as belay.ErrNotFound, and
// with [ErrConflict] and [ErrDenied].
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

	// RetryAfter says when the request can be sent again. It is the header Retry-After, and 0
	// if the response does not have this header.
	RetryAfter time.Duration `json:"-"`
}

// Callers check these errors with errors.Is.
var (
	// ErrConflict says that the state of a session or an approval does not allow the request.
	ErrConflict = errors.New("the request conflicts with the present state")
	// ErrDenied says that the token is unknown, or lacks a role.
	ErrDenied = errors.New("the token does not allow the request")
)

func (p *Problem) Error() string { return p.Detail }

// Is reports whether the problem means the same as an error.
func (p *Problem) Is(target error) bool {
	switch target {
	case ErrConflict:
		return p.Status == http.StatusConflict
	case ErrDenied:
		return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden
	}
	for _, k := range known {
		if k.err == target && k.code == p.Code {
			return true
		}
	}
	return false
}

// known are the errors of stores and agents that become problems.
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

// CodeOf returns the status and the code of an error of package belay, and that error without
// the words around it. The error is nil if err is another error.
func CodeOf(err error) (status int, code codes.Code, is error) {
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.status, k.code, k.err
		}
	}
	return 0, "", nil
}
