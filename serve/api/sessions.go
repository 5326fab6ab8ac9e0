package api

import (
	"time"

	"github.com/belay-run/belay"
)

// Session is one session.
type Session struct {
	ID      string            `json:"id"`
	Title   string            `json:"title"`
	State   string            `json:"state" jsonschema:"new, waiting, running, parked, interrupted, done, or how the last turn ended"`
	Turns   int               `json:"turns"`
	Last    int64             `json:"messages"`
	Created time.Time         `json:"created"`
	Changed time.Time         `json:"changed"`
	Usage   belay.Usage       `json:"usage"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Cursor lists the sessions after this one.
	Cursor string `json:"cursor"`
	// Position is the position after all stored events. Pass it as after to the events of
	// the session to get only later events.
	Position string `json:"position" jsonschema:"pass it as after to the events of the session, to get only later events"`
	// Agent is the agent that ran the last turn.
	Agent string `json:"agent,omitempty" jsonschema:"the agent that ran the last turn"`
	// Model is the model of the session. It is empty if the session uses the agent's model.
	Model string `json:"model,omitempty" jsonschema:"the model of the session; absent if it uses the agent's model"`
	// Held says that a process has the session open.
	Held bool `json:"held,omitempty" jsonschema:"a process has the session open"`
	// Turn is the open turn. It is nil between turns.
	Turn *OpenTurn `json:"turn,omitempty" jsonschema:"the open turn"`
	// Reason says how the last turn ended. It is empty before the first turn has ended.
	Reason belay.EndReason `json:"reason,omitempty" jsonschema:"how the last turn ended"`
	// ForkedFrom is the session and message that this session was forked from.
	ForkedFrom *belay.ForkPoint `json:"forked_from,omitempty"`
	// Ending says why the last turn ended.
	Ending *belay.Ending `json:"ending,omitempty"`
	// Grants are the approvals that cover more than one call.
	Grants []belay.Grant `json:"grants,omitempty" jsonschema:"the approvals that cover more than one call"`
	// Pending is the number of approvals that the session and its subagents wait for.
	Pending int `json:"pending,omitempty" jsonschema:"how many approvals and questions the session and its subagents wait for"`
	// Calls are the calls of the last response that wait for the end of their step. Only a
	// session that is read by itself has them, and only while its turn is open.
	Calls []belay.CallRecord `json:"calls,omitempty" jsonschema:"the calls of the open step; only when one session is read"`
}

// OpenTurn is a turn that is running, parked or was interrupted.
type OpenTurn struct {
	ID string `json:"id"`
	// Step is the number of the model's last response in the turn.
	Step int `json:"step"`
	// Text is the user's message.
	Text   string `json:"text"`
	Parked bool   `json:"parked,omitempty"`
}

// CreateSession is the input of createSession.
type CreateSession struct {
	ID     string            `json:"id,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9._:-]*$" jsonschema:"the id of the new session; by default the server makes one. A token that is limited to labels cannot choose it"`
	Title  string            `json:"title,omitempty" jsonschema:"a title for listings"`
	Labels map[string]string `json:"labels,omitempty" jsonschema:"labels, by which sessions are found; the labels of the token are added"`
}

// ListSessions is the input of listSessions.
type ListSessions struct {
	Prefix   string            `json:"prefix,omitempty" in:"query" jsonschema:"only sessions whose id begins with this"`
	Label    map[string]string `json:"label,omitempty" in:"query" jsonschema:"only sessions with this label, as NAME=VALUE; may be repeated"`
	Open     bool              `json:"open,omitempty" in:"query" jsonschema:"only sessions with a turn that is running, parked or interrupted"`
	State    string            `json:"state,omitempty" in:"query" enum:"running,waiting,failed,idle" jsonschema:"running: a turn runs. waiting: a turn waits for a person or an event. failed: the last turn ended with an error or was interrupted. idle: all others"`
	Agent    string            `json:"agent,omitempty" in:"query" jsonschema:"only sessions whose last turn this agent ran"`
	Text     string            `json:"text,omitempty" in:"query" maxLength:"200" jsonschema:"only sessions with this text in the title or the beginning of the first message; letters match in upper and lower case"`
	Children bool              `json:"children,omitempty" in:"query" jsonschema:"include the sessions of subagents"`
	Since    time.Time         `json:"since,omitzero" in:"query" jsonschema:"only sessions that were changed at this time or later"`
	Limit    int               `json:"limit" in:"query" minimum:"1" maximum:"500" default:"50" jsonschema:"the maximum number of sessions"`
	After    string            `json:"after,omitempty" in:"query" jsonschema:"the field next of the previous page"`
}

// SessionList is a page of sessions.
type SessionList struct {
	Sessions []Session `json:"sessions"`
	Next     string    `json:"next,omitempty" jsonschema:"pass it as after to get the next page; empty on the last page"`
	// Partial says that the server stopped before it found a full page: a search by state, agent
	// or text looks at about 2,000 sessions. Next continues.
	Partial bool `json:"partial,omitempty" jsonschema:"the server has looked at many sessions and stopped before the page was full: next continues"`
}

// UpdateSession is the input of updateSession.
type UpdateSession struct {
	Session string            `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Title   *string           `json:"title,omitempty" jsonschema:"the new title; an empty text removes it"`
	Labels  map[string]string `json:"labels,omitempty" jsonschema:"labels to set; an empty value removes a label"`
}

// ForkSession is the input of forkSession.
type ForkSession struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session to fork"`
	At      int64  `json:"at,omitempty" minimum:"0" jsonschema:"the number of the last message to copy; by default all are copied"`
}

// ListMessages is the input of listMessages.
type ListMessages struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	After   int64  `json:"after,omitempty" in:"query" minimum:"0" jsonschema:"the number of the last message that you know"`
	Newest  bool   `json:"newest,omitempty" in:"query" jsonschema:"the newest messages first"`
	Before  int64  `json:"before,omitempty" in:"query" minimum:"0" jsonschema:"with newest: only messages with a lower number"`
	Limit   int    `json:"limit" in:"query" minimum:"1" maximum:"500" default:"100" jsonschema:"the maximum number of messages"`
	// NoMedia leaves out the bytes of images and files: see ReadMedia.
	NoMedia bool `json:"no_media,omitempty" in:"query" jsonschema:"leave out the bytes of images and files: readMedia returns them"`
}

// ReadMedia is the input of readMedia.
type ReadMedia struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Message int64  `json:"message" in:"path" required:"true" minimum:"1" jsonschema:"the number of the message"`
	// Media is the index in MediaOf.
	Media int `json:"media" in:"path" required:"true" minimum:"0" jsonschema:"which image or file of the message, counted from 0: first those of the message itself, then those of its results"`
}

// MediaOf returns the images and files of a message: those of its parts, then those of its
// results.
func MediaOf(m *belay.Message) []*belay.Media {
	var own, results []*belay.Media
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Media != nil {
			own = append(own, p.Media)
		}
		if p.Result != nil {
			for j := range p.Result.Media {
				results = append(results, &p.Result.Media[j])
			}
		}
	}
	return append(own, results...)
}

// MessageList is a page of messages.
type MessageList struct {
	Messages []*belay.Message `json:"messages"`
	Next     int64            `json:"next,omitempty" jsonschema:"pass it as after, or with newest as before, to get the next page; absent on the last page"`
}
