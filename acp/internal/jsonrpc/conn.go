package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// ErrClosed says that the other side has closed the connection.
var ErrClosed = errors.New("the connection is closed")

// Options are the options of [New].
type Options struct {
	// MaxMessage is the length of the longest message in bytes. Defaults to 64 MiB.
	MaxMessage int
	// MaxRequests is how many requests of the other side may run at once. Defaults to 256.
	MaxRequests int
	// Closing is called when the other side has closed its stream, before Serve waits for
	// the requests that run. Defaults to nothing.
	Closing func()
	// Grace is how long Serve waits for these requests. Defaults to 10 seconds.
	Grace time.Duration
	// Logger gets broken messages and panics. Defaults to no log.
	Logger *slog.Logger
}

// Accept takes a request or a notification. It is called in the order of the messages, and
// must not block. It returns the function that does the work, or nil if nothing is left to
// do. If that function returns a [Reply], the work in it is done after the response was sent.
type Accept func(r *Request) func(ctx context.Context) (any, error)

// Conn is a connection.
type Conn struct {
	opts  Options
	lines lines
	out   io.Writer

	frames  chan []byte   // to the goroutine that writes
	written chan struct{} // closed when that goroutine has ended
	gone    chan struct{} // closed when the other side no longer answers or reads
	leave   sync.Once

	mu      sync.Mutex
	next    int
	calls   map[string]chan *message           // requests to the other side, by id
	running map[string]context.CancelCauseFunc // requests of the other side, by id
	closed  bool                               // the other side has closed its stream
	ended   bool                               // frames is closed
	sending sync.WaitGroup                     // sends to frames
	work    sync.WaitGroup                     // requests that run
}

// New makes a connection. The options may be nil.
func New(in io.Reader, out io.Writer, opts *Options) *Conn {
	c := &Conn{
		out: out, frames: make(chan []byte), written: make(chan struct{}), gone: make(chan struct{}),
		calls: make(map[string]chan *message), running: make(map[string]context.CancelCauseFunc),
	}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.MaxMessage == 0 {
		c.opts.MaxMessage = 64 << 20
	}
	if c.opts.MaxRequests == 0 {
		c.opts.MaxRequests = 256
	}
	if c.opts.Grace == 0 {
		c.opts.Grace = 10 * time.Second
	}
	if c.opts.Logger == nil {
		c.opts.Logger = slog.New(slog.DiscardHandler)
	}
	c.lines = lines{bufio.NewReaderSize(in, 64<<10), c.opts.MaxMessage}
	return c
}

// Serve handles messages until the other side closes its stream or ctx ends. Then it waits
// for the requests that run. Call it once. When ctx ends, the caller must close the input, so
// that the goroutine that reads it ends.
func (c *Conn) Serve(ctx context.Context, accept Accept) error {
	handling, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	go c.write() // ends with the last frame
	read := make(chan error, 1)
	go func() { read <- c.read(handling, accept) }() // ends when the input ends
	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
	}
	c.close(cancel)
	return err
}

// close answers the calls that wait, and waits for the requests that run.
func (c *Conn) close(cancel context.CancelCauseFunc) {
	c.mu.Lock()
	c.closed = true
	for id, answer := range c.calls {
		delete(c.calls, id)
		close(answer)
	}
	c.mu.Unlock()
	if c.opts.Closing != nil {
		c.opts.Closing()
	}
	done := make(chan struct{})
	go func() { // ends with the last request
		c.work.Wait()
		close(done)
	}()
	patience := time.NewTimer(c.opts.Grace)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		c.leave.Do(func() { close(c.gone) }) // a request may wait for a client that no longer reads
		cancel(ErrClosed)
		<-done
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	go func() { // ends when the last frame was taken or given up
		c.sending.Wait()
		close(c.frames)
	}()
	patience.Reset(c.opts.Grace)
	select {
	case <-c.written:
	case <-c.gone: // the client does not read: the goroutine that writes ends when the output is closed
	case <-patience.C:
	}
	c.leave.Do(func() { close(c.gone) })
}

// read handles messages until the input ends.
func (c *Conn) read(ctx context.Context, accept Accept) error {
	for {
		line, err := c.lines.next()
		switch {
		case errors.Is(err, errLong):
			c.opts.Logger.WarnContext(ctx, "a message is too long", "bytes", c.opts.MaxMessage)
			c.refuse(idIn(line), Errorf(CodeRequest, "the message is longer than %d bytes", c.opts.MaxMessage))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a message: %w", err)
		}
		m, fault := parse(line)
		if fault != nil {
			c.opts.Logger.WarnContext(ctx, "a message is broken", "error", fault.Message)
			c.refuse(m.ID, fault)
			continue
		}
		c.handle(ctx, m, accept)
	}
}

// handle handles one message.
func (c *Conn) handle(ctx context.Context, m *message, accept Accept) {
	switch m.Method {
	case "":
		c.answered(m)
		return
	case cancelMethod:
		c.cancelled(m)
		return
	}
	id := string(m.ID)
	c.opts.Logger.DebugContext(ctx, "message", "method", m.Method, "id", id)
	working, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	full := len(c.running) >= c.opts.MaxRequests
	if !full && id != "" {
		c.running[id] = cancel
	}
	c.mu.Unlock()
	end := func() {
		c.mu.Lock()
		delete(c.running, id)
		c.mu.Unlock()
		cancel(nil)
	}
	if full {
		cancel(nil)
		c.refuse(m.ID, Errorf(CodeInternal, "%d requests are running already: wait for their responses", c.opts.MaxRequests))
		return
	}
	request := &Request{Method: m.Method, Params: m.Params, Notification: m.ID == nil}
	run, err := c.take(request, accept)
	if run == nil {
		c.respond(ctx, m, nil, err)
		end()
		return
	}
	c.work.Go(func() {
		defer end()
		result, err := c.run(working, request, run)
		c.respond(ctx, m, result, err)
	})
}

// take calls accept. A panic becomes an error.
func (c *Conn) take(r *Request, accept Accept) (run func(context.Context) (any, error), err error) {
	defer c.caught(r, &err)
	return accept(r), nil
}

// run does the work of a request. A panic becomes an error.
func (c *Conn) run(ctx context.Context, r *Request, f func(context.Context) (any, error)) (result any, err error) {
	defer c.caught(r, &err)
	return f(ctx)
}

// caught turns a panic into an error.
func (c *Conn) caught(r *Request, err *error) { //nolint:gocritic // it is deferred, and sets the result
	if p := recover(); p != nil {
		c.opts.Logger.Error("a request panicked", "method", r.Method, "panic", p, "stack", string(debug.Stack()))
		*err = Errorf(CodeInternal, "%s: panic: %v", r.Method, p)
	}
}

// respond sends the response to a request.
func (c *Conn) respond(ctx context.Context, m *message, result any, err error) {
	reply, ok := result.(Reply)
	if !ok {
		reply = Reply{Result: result}
	}
	if reply.After != nil && err == nil {
		defer func() {
			defer c.caught(&Request{Method: m.Method}, &err)
			reply.After()
		}()
	}
	if m.ID == nil {
		if err != nil {
			c.opts.Logger.WarnContext(ctx, "a notification failed", "method", m.Method, "error", err)
		}
		return
	}
	out := &message{ID: m.ID}
	if err == nil {
		if reply.Result == nil {
			reply.Result = struct{}{}
		}
		out.Result, err = json.Marshal(reply.Result)
	}
	if err != nil {
		out.Error = errorOf(err)
		c.opts.Logger.InfoContext(ctx, "a request failed", "method", m.Method, "error", err)
	}
	_ = c.send(out) // ignore errors: the other side has left
}

// errorOf returns the error for a response.
func errorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return Errorf(CodeCancelled, "%v", err)
	}
	return Errorf(CodeInternal, "%v", err)
}

// refuse answers a message that cannot be handled.
func (c *Conn) refuse(id json.RawMessage, fault *Error) {
	if id != nil {
		_ = c.send(&message{ID: id, Error: fault}) // ignore errors: the other side has left
	}
}

// cancelMethod is the notification with which either side withdraws a request.
const cancelMethod = "$/cancel_request"

type cancelParams struct {
	ID json.RawMessage `json:"requestId"` //nolint:tagliatelle // the protocol's name
}

// cancelled cancels a request that the other side has withdrawn.
func (c *Conn) cancelled(m *message) {
	var p cancelParams
	if json.Unmarshal(m.Params, &p) != nil {
		return // there is nobody to tell: it is a notification
	}
	c.mu.Lock()
	cancel := c.running[string(p.ID)]
	c.mu.Unlock()
	if cancel != nil {
		cancel(context.Canceled)
	}
}

// answered gives a response to the call that waits for it. A response that nobody waits for
// is dropped.
func (c *Conn) answered(m *message) {
	c.mu.Lock()
	answer := c.calls[string(m.ID)]
	delete(c.calls, string(m.ID))
	c.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// Call sends a request and waits for its result. If ctx ends, it withdraws the request.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	sent, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	answer := make(chan *message, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return fmt.Errorf("%s: %w", method, ErrClosed)
	}
	c.next++
	id := strconv.Itoa(c.next)
	c.calls[id] = answer
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}
	if err := c.send(&message{ID: json.RawMessage(id), Method: method, Params: sent}); err != nil {
		forget()
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-answer:
		switch {
		case m == nil:
			return fmt.Errorf("%s: %w", method, ErrClosed)
		case m.Error != nil:
			return fmt.Errorf("%s: the client answered with an error: %w", method, m.Error)
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("%s: the client's answer cannot be read: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		forget()
		_ = c.Notify(cancelMethod, cancelParams{json.RawMessage(id)}) // ignore errors: the other side has left
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	sent, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return c.send(&message{Method: method, Params: sent})
}

// send gives a message to the goroutine that writes.
func (c *Conn) send(m *message) error {
	m.Version = "2.0"
	frame, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return ErrClosed
	}
	c.sending.Add(1)
	c.mu.Unlock()
	defer c.sending.Done()
	select {
	case c.frames <- append(frame, '\n'):
		return nil
	case <-c.gone:
		return ErrClosed
	}
}

// write writes the messages. One goroutine does, so that a message is never torn, and a
// client that does not read blocks nobody for ever.
func (c *Conn) write() {
	defer close(c.written)
	for frame := range c.frames {
		if _, err := c.out.Write(frame); err != nil {
			c.opts.Logger.Warn("cannot write to the client", "error", err)
			c.leave.Do(func() { close(c.gone) })
			return
		}
	}
}
