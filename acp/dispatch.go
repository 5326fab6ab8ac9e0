package acp

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp/internal/jsonrpc"
)

// work is what is left to do of a request after it was accepted.
type work = func(ctx context.Context) (any, error)

// accept takes a message. Whatever must happen in the order of the messages happens here; the
// rest happens in the function that it returns.
func (e *editor) accept(r *jsonrpc.Request) work {
	if !e.isReady() && r.Method != sdk.AgentMethodInitialize {
		return fails(jsonrpc.Errorf(jsonrpc.CodeRequest, "%s came before initialize: send initialize first", r.Method))
	}
	switch r.Method {
	case sdk.AgentMethodInitialize:
		return take(r, e.initialize)
	case sdk.AgentMethodAuthenticate:
		return take(r, e.authenticate)
	case sdk.AgentMethodSessionNew:
		return take(r, e.newSession)
	case sdk.AgentMethodSessionLoad:
		return take(r, e.loadSession)
	case sdk.AgentMethodSessionResume:
		return take(r, e.resumeSession)
	case sdk.AgentMethodSessionList:
		return take(r, e.listSessions)
	case sdk.AgentMethodSessionClose:
		return take(r, e.closeSession)
	case sdk.AgentMethodSessionPrompt:
		return take(r, e.prompt)
	case sdk.AgentMethodSessionCancel:
		return take(r, e.cancel)
	case sdk.AgentMethodSessionSetMode:
		return take(r, e.setMode)
	case sdk.AgentMethodSessionSetConfigOption:
		return take(r, e.setOption)
	default:
		return fails(jsonrpc.Errorf(jsonrpc.CodeMethod, "there is no method %q", r.Method))
	}
}

func (e *editor) isReady() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ready
}

// take decodes and checks the parameters of a request, and calls its function.
func take[P any](r *jsonrpc.Request, f func(*P) work) work {
	var params P
	if err := r.Decode(&params); err != nil {
		return fails(err)
	}
	if checked, ok := any(&params).(interface{ Validate() error }); ok {
		if err := checked.Validate(); err != nil {
			return fails(jsonrpc.Errorf(jsonrpc.CodeParams, "%s: %v", r.Method, err))
		}
	}
	return f(&params)
}

// fails returns the work of a request that was refused.
func fails(err error) work {
	return func(context.Context) (any, error) { return nil, err }
}

// invalid returns the error for a parameter with a mistake.
func invalid(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeParams, format, args...)
}

// told returns the error that a client gets. It has a text that says what to do.
func told(err error) error {
	if missing, ok := errors.AsType[*NoModelError](err); ok {
		return jsonrpc.Errorf(jsonrpc.CodeAuthRequired, "%v", missing)
	}
	switch {
	case errors.Is(err, belay.ErrHeld):
		return fmt.Errorf("another process runs a turn in this session: wait until it has ended, or stop that process: %w", err)
	case errors.Is(err, belay.ErrBusy):
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "a turn is running in this session: wait until it has ended, or cancel it")
	}
	return err
}
