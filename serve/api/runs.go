package api

import (
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// ListRuns is the input of listRuns.
type ListRuns struct {
	Session      string    `json:"session,omitempty" in:"query" jsonschema:"only of this session"`
	Turn         string    `json:"turn,omitempty" in:"query" jsonschema:"only of this turn"`
	Phase        string    `json:"phase,omitempty" in:"query" jsonschema:"only at this phase"`
	Subscription string    `json:"subscription,omitempty" in:"query" jsonschema:"only of this hook, by its subscription id"`
	State        []string  `json:"state,omitempty" in:"query" jsonschema:"only in this state; may be repeated"`
	Since        time.Time `json:"since,omitzero" in:"query" jsonschema:"only runs that started at this time or later"`
	Until        time.Time `json:"until,omitzero" in:"query" jsonschema:"only runs that started before this time"`
	All          bool      `json:"all,omitempty" in:"query" jsonschema:"also records that are only for debugging or for the journal"`
	Limit        int       `json:"limit" in:"query" minimum:"1" maximum:"1000" default:"100" jsonschema:"the maximum number of records"`
}

// RunList is a list of hook runs.
type RunList struct {
	Runs []hook.Run `json:"runs"`
	// Partial says that only the newest 20,000 records were searched.
	Partial bool `json:"partial,omitempty" jsonschema:"only the newest 20,000 records were searched: ask for a session, a hook or a time to find older ones"`
}

// EventPosition is the first event of runEvents. It has only an id: where to continue.
const EventPosition = "position"

// RunEvents is the input of runEvents.
type RunEvents struct {
	After   string `json:"after,omitempty" in:"query" pattern:"^[0-9]{0,18}$" jsonschema:"the id of the last event that you have; by default only new records are sent. The header Last-Event-ID wins"`
	Session string `json:"session,omitempty" in:"query" jsonschema:"only of this session"`
	All     bool   `json:"all,omitempty" in:"query" jsonschema:"also records that are only for debugging or for the journal"`
}

// Explanation explains the dispatch of a hook run.
type Explanation struct {
	hook.Explanation
	// Codes explain the codes in the entries and diagnostics.
	Codes []codes.Info `json:"codes,omitempty"`
}
