package mcptool

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastInitialize is the newest protocol version whose handshake is initialize.
const lastInitialize = "2025-11-25"

// begin starts the server and does the handshake. It tries initialize first, because
// nearly all servers know initialize, and some servers ignore the newer server/discover
// or exit on it. If the server refuses initialize, begin tries server/discover. If that
// succeeds, the next start tries server/discover first.
func (l *link) begin() (*life, error) {
	if l.discovers {
		f, _, err := l.greet("") // the SDK falls back to initialize
		l.discovers = err == nil
		return f, err
	}
	f, refused, err := l.greet(lastInitialize)
	if !refused {
		return f, err
	}
	if newer, _, second := l.greet(""); second == nil {
		l.discovers = true
		return newer, nil
	}
	return nil, err
}

// greet starts the server and does the handshake of one protocol version. The empty
// version means the newest, whose handshake is server/discover. The result refused
// reports whether the server answered that it does not know this handshake.
func (l *link) greet(protocol string) (f *life, refused bool, err error) {
	f = &life{over: make(chan struct{}), broken: make(chan error, 1), listedPrompts: make(chan struct{})}
	argv := slices.Clone(l.spec.argv)
	if l.spec.prepare != nil {
		if argv, err = l.spec.prepare(l.ctx, argv); err != nil {
			return nil, false, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.start, errors.New("the server did not answer the handshake in time"))
	defer cancel()
	said := &lines{logger: l.logger, server: l.name, spec: l.spec}
	var transport mcp.Transport
	answers := &headed{headers: l.spec.headers, base: cmp.Or[http.RoundTripper](l.spec.transport, guarded()), announced: l.announce}
	if l.spec.url != "" {
		transport = newHTTP(l.spec, answers)
	} else {
		f.pipe = newPipe(l.spec, argv, said, l.grace)
		f.pipe.announced = l.announce
		transport = f.pipe
		pipe := f.pipe // f is a result and becomes nil when greet returns an error
		defer context.AfterFunc(ctx, func() { pipe.stop(context.Cause(ctx)) })()
	}
	var remembers atomic.Bool // whether the SDK caches the list of tools, as it does in newer protocol versions
	opts := &mcp.ClientOptions{
		Logger:       slog.New(slog.DiscardHandler),
		Capabilities: l.spec.capabilities(),
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { // may be called before the handshake is done
			if remembers.Load() {
				l.announce() // a second time: earlier listings may have come from the SDK's cache
			}
		},
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) {
			select {
			case l.prompted <- struct{}{}:
			default: // a listing is already due
			}
		},
		ProgressNotificationHandler: l.progressed,
		ElicitationHandler:          l.elicit,
		LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { said.message(r.Params) }, //nolint:staticcheck // deprecated in the newest protocol, but most servers use it
	}
	if l.spec.sampling {
		opts.CreateMessageHandler = l.sample //nolint:staticcheck // likewise
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "belay", Version: version()}, opts)
	if root := l.spec.root; root != "" {
		client.AddRoots(rootOf(root)) //nolint:staticcheck // likewise
	}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		answer, answered := errors.AsType[*jsonrpc.Error](err)
		refused = answered && answer.Code != codeRejected && answer.Code != codeClosing || answers.refused.Load()
		if f.pipe != nil {
			return nil, refused, f.pipe.stillborn(err)
		}
		return nil, refused, httpReason(err)
	}
	remembers.Store(session.InitializeResult().ProtocolVersion > lastInitialize)
	f.session = session
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	f.requestLogs(l.logger)
	go f.watch() // ends with the session
	return f, false, nil
}

// stillborn stops a program whose handshake failed, and returns the reason.
func (p *pipe) stillborn(err error) error {
	if p.stdin == nil {
		return err
	}
	_ = pipeEnd{p}.Close() // Close never fails
	<-p.over
	if errors.Is(p.err, errClosed) { // the program was running until Close
		return err
	}
	return p.err
}
