package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tracecontext"
)

// serverTool is a tool of a server, for an agent.
type serverTool struct {
	*offered

	declaration belay.ToolDeclaration
	server      string
	link        *link
	over        context.Context //nolint:containedctx // it lives as long as the extension: calls end with it
}

var _ belay.TraitTool = (*serverTool)(nil)

// Declaration returns the server's declaration of the tool, with the agent's name for the
// tool.
func (t *serverTool) Declaration() belay.ToolDeclaration { return t.declaration }

// Traits lets a tool run in parallel with others only if its server marks it as
// read-only. Traits ignores the server's idempotent mark, because a server may be wrong
// about it.
func (t *serverTool) Traits() belay.ToolTraits { return belay.ToolTraits{Serial: !t.readOnly} }

// Call runs the tool on the server.
func (t *serverTool) Call(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
	if !t.link.pool.hold(t.link) {
		return t.unavailable(errClosed, ""), nil
	}
	defer t.link.pool.release(t.link)
	f := t.link.current.Load()
	if f == nil {
		return t.unavailable(t.link.now.Load().err, ""), nil
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })()
	defer context.AfterFunc(t.over, func() { cancel(errClosed) })()
	open := newOpenCall(within, call, cancel)
	if open != nil {
		within = context.WithValue(within, openCallKey{}, open)
		defer t.link.opens(open)()
	}
	do := t.read
	if do == nil {
		do = (*serverTool).run
	}
	result, err := do(t, within, f, call)
	if question := open.asked(); question != "" && ctx.Err() == nil {
		return belay.Result{}, belay.ParkAsk(question)
	}
	if err == nil {
		t.link.deaths.Store(0)
		return result, nil
	}
	return t.failed(ctx, f, err)
}

// run sends the call to the server and waits for the result.
func (t *serverTool) run(ctx context.Context, f *life, call *belay.Invocation) (belay.Result, error) {
	params := &mcp.CallToolParams{Name: t.name, Arguments: arguments(call.Input)}
	if trace := tracecontext.Of(ctx); trace != "" {
		params.Meta = mcp.Meta{tracecontext.Header: trace}
	}
	if controls := call.Controls(); controls != nil {
		token := t.link.token()
		params.SetProgressToken(token)
		news := &progress{controls: controls, call: &belay.CallPart{ID: call.ID, Tool: call.Tool, Input: call.Input}}
		t.link.progress.Store(token, news.tell)
		defer news.end()
		defer t.link.progress.Delete(token)
	}
	if !t.readOnly {
		defer t.link.called(t.link.announced.Load())
	}
	result, err := f.session.CallTool(ctx, params)
	if err != nil {
		return belay.Result{}, err //nolint:wrapcheck // the caller inspects the error
	}
	return t.result(result), nil
}

// arguments returns the input of a call as the SDK expects it.
func arguments(input json.RawMessage) any {
	if len(input) == 0 {
		return nil
	}
	return input
}

const unknownEffect = " It is unknown whether the call had an effect."

// Error codes of the SDK itself. They do not come from the server.
const (
	codeRejected = -32005 // the transport rejected the message
	codeClosing  = -32004
)

// failed returns the result for a call that ended with an error.
func (t *serverTool) failed(ctx context.Context, f *life, err error) (belay.Result, error) {
	answer, answered := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ctx.Err() != nil:
		return belay.Result{}, context.Cause(ctx)
	case t.over.Err() != nil:
		return t.unavailable(errClosed, unknownEffect), nil //nolint:nilerr // the result contains the error
	case f.ctx.Err() != nil:
		return t.unavailable(context.Cause(f.ctx), unknownEffect), nil //nolint:nilerr // the result contains the error
	case answered && answer.Code == codeUnreadable:
		t.link.deaths.Store(0)
		return belay.Failed(belay.ClassFailed, fmt.Sprintf("MCP server %q answered with a result that Belay cannot read.%s", t.server, unknownEffect)), nil
	case answered && answer.Code != codeRejected && answer.Code != codeClosing:
		t.link.deaths.Store(0)
		return belay.Failed(classOf(answer.Code), fmt.Sprintf("MCP server %q answered: %s", t.server, t.spoken(answer.Message))), nil
	}
	if strings.Contains(err.Error(), "multi-round-trip: exceeded") { // this error has no type
		t.link.deaths.Store(0)
		return belay.Failed(belay.ClassFailed, fmt.Sprintf("MCP server %q keeps asking for more input and gives no result.%s", t.server, unknownEffect)), nil
	}
	if f.pipe != nil && (errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)) {
		select {
		case <-f.over: // wait for f.err, which has the reason
			return t.unavailable(f.err(), unknownEffect), nil
		case <-ctx.Done():
			return belay.Result{}, context.Cause(ctx)
		}
	}
	effect := unknownEffect
	if _, login := errors.AsType[*loginError](err); login || errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, syscall.ECONNREFUSED) {
		effect = "" // the server never got the call
	}
	err = httpReason(err)
	t.link.breaks(f, err)
	return t.unavailable(err, effect), nil
}

// spoken returns an error text for the model, without secrets and of limited length.
func (t *serverTool) spoken(text string) string {
	const most = 4_000
	text = t.link.spec.hide(text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

func classOf(code int64) belay.ResultClass {
	switch code {
	case jsonrpc.CodeInvalidParams:
		return belay.ClassInvalid
	case jsonrpc.CodeMethodNotFound:
		return belay.ClassNotFound
	default:
		return belay.ClassFailed
	}
}

// unavailable returns the result for a call whose server is not available.
func (t *serverTool) unavailable(why error, effect string) belay.Result {
	reason := "it is not ready"
	if why != nil {
		reason = strings.TrimRight(t.link.spec.hide(why.Error()), ".")
	}
	return belay.Failed(belay.ClassUnavailable,
		fmt.Sprintf("MCP server %q is not available: %s.%s Belay keeps trying to reach it: continue without it, or try again later.", t.server, reason, effect))
}
