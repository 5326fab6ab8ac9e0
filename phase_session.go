package belay

import (
	"strconv"
)

// SessionOpened is the input of session.start.
type SessionOpened struct{ input[sessionOpened] }

type sessionOpened struct {
	Source   string `json:"source" jsonschema:"new, resumed, forked or recovered"`
	Messages int    `json:"messages" jsonschema:"how many messages the transcript holds"`
}

// part distinguishes the openings of a session by their source and the length of the
// transcript.
func (s *sessionOpened) part() string { return s.Source + ":" + strconv.Itoa(s.Messages) }

// Source says how the session was opened: new, resumed, forked or recovered.
func (s SessionOpened) Source() string { return s.data().Source }

// Messages is how many messages the transcript holds.
func (s SessionOpened) Messages() int { return s.data().Messages }

// SessionClosed is the input of session.end.
type SessionClosed struct{ input[sessionClosed] }

type sessionClosed struct {
	Reason EndReason `json:"reason" jsonschema:"how the last turn ended"`
	Turns  int       `json:"turns" jsonschema:"how many turns the session had"`
}

func (s *sessionClosed) part() string { return strconv.Itoa(s.Turns) }

// Reason is how the last turn ended.
func (s SessionClosed) Reason() EndReason { return s.data().Reason }

// Turns is how many turns the session had.
func (s SessionClosed) Turns() int { return s.data().Turns }
