package vendorhook

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"sync"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
)

// memory remembers the calls that PreToolUse hooks have allowed, until their approval is
// asked for.
type memory struct {
	mu      sync.Mutex
	allowed map[string]string // the reason, by session and call
}

// mostAllowed limits the memory. Most calls that a hook allows need no approval, so they are
// never asked for.
const mostAllowed = 4096

func newMemory() *memory { return &memory{allowed: make(map[string]string)} }

func (m *memory) allow(session, call, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.allowed) >= mostAllowed {
		clear(m.allowed) // then a person is asked
	}
	m.allowed[session+" "+call] = cmp.Or(reason, "a hook allowed it")
}

// take returns why a call was allowed, and forgets it.
func (m *memory) take(session, call string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := session + " " + call
	reason, ok := m.allowed[key]
	maps.DeleteFunc(m.allowed, func(k, _ string) bool { return k == key })
	return reason, ok
}

// approver answers approval.request for calls that a PreToolUse hook has allowed.
type approver struct{ memory *memory }

// addApprover adds the declaration of an approver.
func (r *reader) addApprover() {
	r.out.Hooks = append(r.out.Hooks, &declare.Declaration{
		ID: "allowed-calls", Phase: "approval.request", File: r.file.Path, Line: 1, Dir: r.opts.Project, Kind: hook.HandlerCommand, Argv: []string{"true"},
		Protocol: approver{r.memory},
		Options:  hook.Options{Description: "approves calls that a PreToolUse hook allowed", Capabilities: besides | hook.CanApprove},
	})
}

// Ask answers without a command.
func (a approver) Ask(_ context.Context, e *worker.Envelope) (*declare.Question, error) {
	var in struct {
		Call  string `json:"call"`
		Floor bool   `json:"floor"`
	}
	if err := json.Unmarshal(e.Input, &in); err != nil {
		return nil, failed("the input of the event cannot be read", err)
	}
	q := &declare.Question{Known: true}
	if !in.Floor { // another hook or the tool itself asks: the hook did not answer that question
		return q, nil
	}
	if reason, ok := a.memory.take(e.Session, in.Call); ok {
		var err error
		if q.Answer, err = json.Marshal(map[string]string{"decision": "allow", "reason": reason}); err != nil {
			return nil, failed("the answer cannot be written", err)
		}
	}
	return q, nil
}

// Read is never called, because Ask knows the answer.
func (a approver) Read(context.Context, *worker.Envelope, *declare.Reply) (json.RawMessage, error) {
	return nil, nil
}
