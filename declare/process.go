package declare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/proc"
)

// process is a worker process, from its start to its end. It owns two goroutines: live
// runs the child, and feed writes to the child's input. Both end with the child.
type process struct {
	k      *keeper
	stop   context.CancelCauseFunc // ends the process group
	ready  chan struct{}           // closed when the handshake is done
	done   chan struct{}           // closed when the child has ended
	err    error                   // why the child ended; valid when done is closed
	found  *denials                // denials in garbage, or nil; valid when done is closed
	over   context.Context         //nolint:containedctx // it lives as long as the child's input
	close  context.CancelFunc      // ends over
	closed atomic.Bool             // set when Belay ends the worker

	writing sync.Mutex
	stdin   *os.File      // nil until feed sets it, and nil again when it is closed
	queue   []*request    // lines that the child's input did not accept at once
	queued  chan struct{} // has an element when the queue is not empty
	feeding bool          // feed is writing a line

	mu      sync.Mutex
	calls   map[uint64]chan response
	last    uint64 // the last call id
	partial []byte // the current line; only Write uses it
	errors  *lines

	// spoiled is the error of the first line that was not an answer, or nil. After such a
	// line, no call succeeds. The child is stopped when no call is running, or after a
	// grace period. Until then it may still print a denial.
	spoiled error
	// garbage has the lines that are not answers. A denial in them counts for all running
	// calls, because it is unknown to which call it belongs. Until the child has ended,
	// only Write uses garbage.
	garbage *output
	tooLong bool // the current line is too long; its beginning is in garbage
}

type request struct {
	line    []byte
	written atomic.Bool
}

// response is a worker's answer to a call.
type response struct {
	result json.RawMessage // nil if the call failed
	found  *denials        // denials in the whole answer; nil without an answer
	err    error
}

func startProcess(k *keeper, run *Execution) *process {
	ctx, stop := context.WithCancelCause(context.Background())
	p := &process{
		k: k, queued: make(chan struct{}, 1), stop: stop, ready: make(chan struct{}), done: make(chan struct{}),
		calls:  make(map[uint64]chan response),
		errors: &lines{logger: k.set.opts.Logger, redact: k.set.redact, subscription: k.set.id(k.d.ID)},
	}
	p.over, p.close = context.WithCancel(context.Background())
	go p.live(ctx, run)
	return p
}

// live runs the child until it ends. It is a goroutine of the process.
func (p *process) live(ctx context.Context, run *Execution) {
	theirs, ours, err := os.Pipe()
	if err == nil {
		go p.feed(ours) // ends with the process, or when the input is closed
		go p.greet()    //nolint:gosec // it ends with the handshake, which has its own timeout
		var exit proc.Exit
		exit, err = proc.Run(ctx, &proc.Command{
			Argv: run.Argv, Dir: run.Dir, Env: run.Env, StdinFrom: theirs, Stdout: p, Stderr: p.errors, Grace: p.k.set.opts.Grace, Whole: true,
		})
		if err != nil {
			err = startError(run, err)
		} else {
			p.lastLine()
			err = p.ending(exit)
		}
	}
	if p.garbage != nil {
		p.found = p.garbage.denials()
	}
	p.err = err
	p.close()
	p.stop(nil)
	p.k.died(err)
	close(p.done)
}

// ending returns why the child ended.
func (p *process) ending(exit proc.Exit) error {
	if p.closed.Load() {
		return ErrClosed
	}
	said := p.errors.shown()
	switch {
	case p.spoiled != nil:
		return p.spoiled
	case exit.Stopped != nil:
		return exit.Stopped
	case exit.Signal != nil:
		return failed(fmt.Sprintf("the worker was killed (signal %d)", exit.Signal), said)
	default:
		return failed(fmt.Sprintf("the worker ended with exit code %d", exit.Code), said)
	}
}

func (p *process) isOver() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// send writes a line to the child's input, or queues the line if the input accepts no
// more.
func (p *process) send(r *request) {
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.stdin != nil && !p.feeding && len(p.queue) == 0 {
		if r.line = proc.Offer(p.stdin, r.line); len(r.line) == 0 {
			r.written.Store(true)
			return
		}
	}
	p.queue = append(p.queue, r)
	select {
	case p.queued <- struct{}{}:
	default: // feed already knows about the queue
	}
}

// feed writes the queued lines to the child's input. It is a goroutine of the process.
func (p *process) feed(to *os.File) {
	p.writing.Lock()
	p.stdin = to
	p.writing.Unlock()
	stop := context.AfterFunc(p.over, func() { _ = to.Close() }) // also ends a blocked write
	defer func() {
		stop()
		p.writing.Lock()
		defer p.writing.Unlock()
		p.stdin = nil
		_ = to.Close() // the child sees the end of its input
	}()
	for {
		select {
		case <-p.queued:
		case <-p.over.Done():
			return
		}
		for r := p.next(); r != nil; r = p.next() {
			if _, err := to.Write(r.line); err != nil {
				return // the child is ending, or its input was closed
			}
			r.written.Store(true)
		}
	}
}

// next removes a line from the queue, or returns nil.
func (p *process) next() *request {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.feeding = len(p.queue) > 0
	if !p.feeding {
		return nil
	}
	r := p.queue[0]
	p.queue = p.queue[1:]
	return r
}

// greet does the handshake.
func (p *process) greet() {
	within := max(p.k.d.Options.Timeout, greeting)
	ctx, cancel := context.WithTimeoutCause(context.Background(), within, fmt.Errorf("no answer to the handshake within %s", within))
	defer cancel()
	said := p.call(ctx, "hello", json.RawMessage(fmt.Sprintf(`{"v":%d}`, worker.Version)))
	var hello struct {
		V int `json:"v"`
	}
	switch {
	case said.err != nil:
		p.stop(fmt.Errorf("the worker did not answer the handshake: %w", said.err))
	case json.Unmarshal(said.result, &hello) != nil || hello.V != worker.Version:
		p.stop(&hook.SafeError{
			Code:    codes.OutputInvalid,
			Message: fmt.Sprintf("the worker does not support protocol version %d: it must answer hello with {\"v\": %d}", worker.Version, worker.Version),
		})
	default:
		close(p.ready)
	}
}

// call sends a call to the worker and waits for the response.
func (p *process) call(ctx context.Context, method string, params json.RawMessage) response {
	answer := make(chan response, 1)
	p.mu.Lock()
	p.last++
	id := p.last
	p.calls[id] = answer
	p.mu.Unlock()
	defer p.forget(id)

	line := make([]byte, 0, len(params)+80)
	line = append(line, `{"jsonrpc":"2.0","id":`...)
	line = strconv.AppendUint(line, id, 10)
	line = append(line, `,"method":"`...)
	line = append(line, method...)
	line = append(line, `","params":`...)
	line = append(append(line, params...), '}', '\n')
	r := &request{line: line}
	p.send(r)
	select {
	case said := <-answer:
		return said
	case <-p.over.Done():
		if p.closed.Load() {
			return response{err: ErrClosed}
		}
		<-p.done // p.err is valid after this
		select { // the worker may have answered before it ended
		case said := <-answer:
			return said
		default:
		}
		return response{found: p.found, err: p.err}
	case <-ctx.Done():
		if !r.written.Load() {
			p.stop(errDeaf)
		} else {
			p.cancel(id)
		}
		return response{err: context.Cause(ctx)}
	}
}

// errDeaf means that a worker does not read its input.
var errDeaf = &hook.SafeError{Code: codes.Error, Message: "Belay stopped the worker because it does not read its standard input"}

func (p *process) forget(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

// cancel tells the worker that a call was cancelled.
func (p *process) cancel(id uint64) {
	p.send(&request{line: fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"cancel","params":{"id":%d}}`+"\n", id)})
}

// end closes the child's input and waits. If the child does not end in time, it is
// killed.
func (p *process) end() {
	p.closed.Store(true)
	p.close()
	timer := time.NewTimer(max(p.k.set.opts.Grace, 500*time.Millisecond))
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.stop(ErrClosed)
	<-p.done
}

// Write handles the child's standard output.
func (p *process) Write(chunk []byte) (int, error) {
	n := len(chunk)
	for len(chunk) > 0 {
		end := bytes.IndexByte(chunk, '\n') + 1
		part := chunk
		if end > 0 {
			part = chunk[:end]
		}
		chunk = chunk[len(part):]
		if err := p.part(part, end > 0); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// part handles a part of a line; last means that the line ends here. It fails if the
// child prints too much output that is not an answer.
func (p *process) part(part []byte, last bool) error {
	if p.tooLong {
		p.tooLong = !last
		return p.discard(part)
	}
	p.partial = append(p.partial, part...)
	if !last && len(p.partial) <= mostOutput {
		return nil
	}
	p.tooLong = !last
	return p.line()
}

// line handles a complete line, or the beginning of a line that is too long.
func (p *process) line() error {
	why := error(errLong)
	if len(p.partial) <= mostOutput {
		why = p.answered(p.partial)
	}
	line := p.partial
	p.partial = p.partial[:0]
	if why == nil {
		return nil
	}
	p.spoil(why)
	return p.discard(line)
}

// discard stores output that is not an answer in garbage.
func (p *process) discard(part []byte) error {
	if p.garbage == nil {
		p.garbage = newOutput()
	}
	_, err := p.garbage.Write(part)
	return err
}

// spoil notes that the child's output is invalid. The child is then stopped, see spoiled.
func (p *process) spoil(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spoiled != nil {
		return
	}
	p.spoiled = why
	if len(p.calls) == 0 {
		p.stop(why)
		return
	}
	time.AfterFunc(cmp.Or(p.k.set.opts.Grace, proc.DefaultGrace), func() { p.stop(why) })
}

// lastLine handles the rest of the output after the last line break.
func (p *process) lastLine() {
	if len(bytes.TrimSpace(p.partial)) > 0 {
		_ = p.line() // an error does not matter: the child has ended
	}
}

var errLong = &hook.SafeError{
	Code: codes.OutputInvalid, Message: fmt.Sprintf("the worker printed a line of more than %d KiB and was stopped", mostOutput>>10),
}

// answered handles a line as the answer to a call. It fails if the line is not an answer.
func (p *process) answered(line []byte) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	m, ok := plainMessage(line)
	if !ok && !m.read(line) {
		return garbage("which is not a JSON-RPC 2.0 response", line)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.id == 0 || m.id > p.last {
		return garbage("a response with an unknown call id", line)
	}
	answer := p.calls[m.id]
	if answer == nil {
		return nil // the call was already cancelled
	}
	delete(p.calls, m.id)
	said := response{result: m.result, found: denialsIn(line), err: p.spoiled}
	if m.failed && said.err == nil {
		said.err = workerError(m.reason)
	}
	answer <- said
	if p.spoiled != nil && len(p.calls) == 0 {
		p.stop(p.spoiled)
	}
	return nil
}

// message is a response of a worker.
type message struct {
	id     uint64
	result json.RawMessage
	failed bool   // the worker reported an error
	reason string // of the error
}

// plainMessage reads a line in the form in which most workers write a result: without
// spaces, and with the keys in the order of the specification. It reports false for every
// other line, which read can perhaps read. It takes a third of the time of read.
func plainMessage(line []byte) (m message, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`))
	digits, value, found := bytes.Cut(rest, []byte(`,"result":`))
	id, err := strconv.ParseUint(string(digits), 10, 64)
	if !ok || !found || err != nil || digits[0] == '0' {
		return m, false
	}
	value, ok = bytes.CutSuffix(value, []byte("}"))
	if value = bytes.TrimSpace(value); !ok || !json.Valid(value) { // a second key, such as error, is not part of a valid value
		return m, false
	}
	return message{id: id, result: bytes.Clone(value)}, true
}

// read reads a line. It reports false if the line is not a response.
func (m *message) read(line []byte) bool {
	var said struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      *uint64         `json:"id"`
		Result  json.RawMessage `json:"result"`
		Error   *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &said); err != nil || said.JSONRPC != "2.0" || said.ID == nil || (said.Result == nil) == (said.Error == nil) {
		return false
	}
	if m.id, m.result = *said.ID, said.Result; said.Error != nil {
		m.failed, m.reason = true, said.Error.Message
	}
	return true
}

// garbage returns the error for a line that is not an answer.
func garbage(what string, line []byte) error {
	return &hook.SafeError{
		Code:    codes.OutputInvalid,
		Message: "Belay stopped the worker because it printed a line that is not a response: print messages for people to standard error",
		Err:     fmt.Errorf("%q, %s", firstBytes(line, 80), what),
	}
}

func firstBytes(line []byte, n int) string {
	return strings.ToValidUTF8(string(line[:min(len(line), n)]), "?")
}
