package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// docs:begin audit

// Audit writes a line of JSON for each call, each decision of a person and each turn. It
// writes names, ids and times, and nothing of the conversation.
type Audit struct {
	To  io.Writer
	Now func() time.Time

	mu sync.Mutex // calls of one message end concurrently
}

var (
	_ belay.HookExtension  = (*Audit)(nil)
	_ belay.CloseExtension = (*Audit)(nil)
)

// Entry is a line of the audit.
type Entry struct {
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	Turn    string    `json:"turn"`
	What    string    `json:"what"`
	Tool    string    `json:"tool,omitempty"`
	Outcome string    `json:"outcome"`
	By      string    `json:"by,omitempty"`
}

// Name returns the name for errors.
func (*Audit) Name() string { return "audit" }

// Hooks returns one subscription for each kind of entry.
func (a *Audit) Hooks() []hook.Subscription {
	return []hook.Subscription{
		belay.ToolPost.On("audit.call", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
			outcome := "ok"
			if r.IsError() {
				outcome = string(r.Class())
			}
			return belay.ToolReaction{}, a.write(Entry{Session: r.Session(), Turn: r.Turn(), What: "call", Tool: r.Tool(), Outcome: outcome})
		}, nil),
		belay.ToolDenied.On("audit.denied", func(_ context.Context, c belay.DeniedCall) (belay.Note, error) {
			return belay.Note{}, a.write(Entry{Session: c.Session(), Turn: c.Turn(), What: "call", Tool: c.Tool(), Outcome: "denied", By: c.By()})
		}, nil),
		belay.ApprovalDecided.On("audit.decision", func(_ context.Context, o belay.ApprovalOutcome) (belay.Note, error) {
			return belay.Note{}, a.write(Entry{Session: o.Session(), Turn: o.Turn(), What: "decision", Tool: o.Tool(), Outcome: o.Decision(), By: o.By()})
		}, nil),
		belay.TurnPostTurn.On("audit.turn", func(_ context.Context, t belay.TurnEnded) (belay.Note, error) {
			return belay.Note{}, a.write(Entry{Session: t.Session(), Turn: t.Turn(), What: "turn", Outcome: string(t.Reason())})
		}, nil),
	}
}

func (a *Audit) write(e Entry) error {
	e.Time = a.Now().UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.To.Write(append(line, '\n')); err != nil { // a line at a time
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Close is called when the agent is closed. It also closes the writer, if
// possible.
func (a *Audit) Close(context.Context) error {
	if c, ok := a.To.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	return nil
}

// docs:end audit
