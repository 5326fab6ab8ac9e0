package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/internal/proc"
)

const (
	// mostMessage is the maximum length of a server's message in bytes.
	mostMessage = 16 << 20
	// leaving is how long a server may take to end after its input was closed. After
	// that, the server gets a signal. leaving is also the time to finish writing a
	// message after its caller has stopped waiting.
	leaving = 2 * time.Second
	// mostUnanswered is how many requests of a server may wait for an answer. mostRequest
	// is the maximum length of one request. A server could otherwise fill the memory with
	// answers: it only has to send requests and read nothing.
	mostUnanswered = 256
	mostRequest    = 256 << 10
)

// pipe communicates with a program over its standard input and output, or with a function
// that serves in this process. It owns one goroutine, which runs the child and ends with it.
type pipe struct {
	serve     func(context.Context, io.ReadCloser, io.WriteCloser) error // nil for a program
	argv, env []string
	dir       string
	stderr    *lines
	grace     time.Duration

	life    context.Context         //nolint:containedctx // it lives as long as the child
	stop    context.CancelCauseFunc // ends the process group
	stdin   *os.File                // nil if no pipe could be made
	writing chan struct{}           // has an element while a message is written
	read    chan jsonrpc.Message
	partial []byte        // the incomplete last line of the output; only Write uses it
	over    chan struct{} // closed when the program has ended
	err     error         // why the program ended; valid when over is closed
	closed  chan struct{} // closed when no one reads messages any more
	closing sync.Once
	// announced is called when the server announces a change of its tools.
	announced func()
	// unanswered is how many requests of the server wait for an answer.
	unanswered atomic.Int64
}

var (
	_ mcp.Transport  = (*pipe)(nil)
	_ mcp.Connection = (*pipeEnd)(nil)
)

func newPipe(s *spec, argv []string, stderr *lines, grace time.Duration) *pipe {
	p := &pipe{
		serve: s.serve, argv: argv, env: s.env, dir: s.dir, stderr: stderr, grace: grace,
		writing: make(chan struct{}, 1), read: make(chan jsonrpc.Message, 16),
		over: make(chan struct{}), closed: make(chan struct{}),
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	return p
}

// pipeEnd is a pipe as an mcp.Connection.
type pipeEnd struct{ *pipe }

// Connect starts the program. If the start fails, Read returns io.EOF and p.err is the
// reason.
func (p *pipe) Connect(context.Context) (mcp.Connection, error) { //nolint:ireturn // it is the SDK's interface
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("it could not be started: %w", err)
	}
	p.stdin = ours
	go p.live(theirs)
	return pipeEnd{p}, nil
}

// live runs the program until it ends.
func (p *pipe) live(stdin *os.File) {
	defer close(p.over)
	defer func() {
		p.stop(nil)
		_ = p.stdin.Close() // nobody reads it
	}()
	if p.serve != nil {
		p.err = p.serveHere(stdin)
		return
	}
	exit, err := proc.Run(p.life, &proc.Command{
		Argv: p.argv, Dir: p.dir, Env: p.env, StdinFrom: stdin, Stdout: output{p}, Stderr: p.stderr, Grace: p.grace, Whole: true,
	})
	switch {
	case err != nil:
		p.err = startError(p.argv[0], p.dir, err)
	default:
		p.err = p.ending(exit)
	}
}

// startError explains why the program did not start.
func startError(program, dir string, err error) error {
	if info, gone := os.Stat(dir); dir != "" && (gone != nil || !info.IsDir()) {
		return fmt.Errorf("its directory %s does not exist", dir)
	}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		if name, rest, several := strings.Cut(strings.TrimSpace(program), " "); several {
			return fmt.Errorf("there is no program %q: if %s is the program, put the rest into args: \"command\": %q, \"args\": %s", program, name, name, jsonWords(rest))
		}
		return fmt.Errorf("there is no program %s: install it, or name it by its path", program)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the program %s cannot be executed: make it executable", program)
	default:
		return fmt.Errorf("it could not be started: %w", err)
	}
}

// jsonWords returns the words of a text as a JSON list.
func jsonWords(text string) string {
	list, err := json.Marshal(strings.Fields(text))
	if err != nil { // strings can always be encoded
		panic(err)
	}
	return string(list)
}

// ending returns why the program ended.
func (p *pipe) ending(exit proc.Exit) error {
	var reason string
	switch {
	case exit.Stopped != nil:
		return exit.Stopped
	case p.isClosed():
		return errClosed
	case exit.Signal != nil:
		reason = fmt.Sprintf("it was killed (signal %d)", exit.Signal)
	default:
		reason = fmt.Sprintf("it ended with exit code %d", exit.Code)
	}
	if said := p.stderr.lastLine(); said != "" {
		reason += ": " + said
	}
	return errors.New(reason)
}

func (p *pipe) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// Read returns the next message, or io.EOF when the program has ended.
func (p pipeEnd) Read(ctx context.Context) (jsonrpc.Message, error) { //nolint:ireturn // it is the SDK's interface
	select {
	case m := <-p.read:
		return m, nil
	default:
	}
	select {
	case m := <-p.read:
		return m, nil
	case <-p.over:
		select { // the program may have sent a message before it ended
		case m := <-p.read:
			return m, nil
		default:
			return nil, io.EOF
		}
	case <-p.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errDeaf is the error of a server that does not read its input.
var errDeaf = errors.New("the server does not read its standard input, so Belay stopped it")

// Write sends a message. If ctx ends during the write, Write still gets a short time (see
// leaving) to finish. Half a message would make all later messages unreadable.
func (p pipeEnd) Write(ctx context.Context, message jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	line = append(line, '\n')
	if _, answers := message.(*jsonrpc.Response); answers {
		defer p.unanswered.Add(-1)
	}
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over:
		return io.ErrClosedPipe
	}
	defer func() { <-p.writing }()
	if line = proc.Offer(p.stdin, line); len(line) == 0 {
		return nil
	}
	_ = p.stdin.SetWriteDeadline(time.Time{}) // remove the deadline of the previous message
	defer context.AfterFunc(ctx, func() { _ = p.stdin.SetWriteDeadline(time.Now().Add(leaving)) })()
	_, err = p.stdin.Write(line)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.stop(errDeaf)
	}
	switch {
	case err != nil && p.life.Err() != nil: // the reason is in p.err when over is closed
		return io.ErrClosedPipe
	case err != nil:
		return p.unwritten(ctx, err)
	}
	return nil
}

// unwritten returns the error of a message that the program did not take. A program that has
// closed its input is usually about to end, and how it ends says more than the closed input.
func (p *pipe) unwritten(ctx context.Context, err error) error {
	late := time.NewTimer(leaving)
	defer late.Stop()
	select {
	case <-p.over:
		return io.ErrClosedPipe // the reason is in p.err
	case <-ctx.Done():
	case <-late.C:
	}
	return fmt.Errorf("send a message: %w", err)
}

// Close closes the program's input. If the program does not end in time, it is killed.
// Close does not wait for the end.
func (p pipeEnd) Close() error {
	p.closing.Do(func() {
		close(p.closed)
		_ = p.stdin.Close() // the program may have ended already
		time.AfterFunc(leaving, func() { p.stop(errClosed) })
	})
	return nil
}

// SessionID returns "": a program has only one session.
func (pipeEnd) SessionID() string { return "" }

// output receives the program's standard output. An error of Write ends the program.
type output struct{ *pipe }

func (p output) Write(chunk []byte) (int, error) {
	n := len(chunk)
	for {
		i := bytes.IndexByte(chunk, '\n')
		if i < 0 {
			break
		}
		line := chunk[:i]
		if len(p.partial) > 0 {
			line = append(p.partial, line...)
		}
		if len(line) > mostMessage {
			return 0, errLong
		}
		if err := p.said(bytes.TrimSpace(line)); err != nil {
			return 0, err
		}
		if chunk = chunk[i+1:]; cap(line) > 1<<20 {
			p.partial = nil // free the large buffer: long lines are rare
		} else {
			p.partial = p.partial[:0]
		}
	}
	if len(p.partial)+len(chunk) > mostMessage {
		return 0, errLong
	}
	p.partial = append(p.partial, chunk...)
	return n, nil
}

var errBigRequest = fmt.Errorf("it was stopped: it sent a request of more than %d KiB", mostRequest>>10)

var errLong = fmt.Errorf("it was stopped: it sent a message of more than %d MiB", mostMessage>>20)

// said handles one line of output.
func (p output) said(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	if line[0] != '[' {
		return p.message(line)
	}
	var batch []json.RawMessage // one version of the protocol allowed batches
	if err := json.Unmarshal(line, &batch); err != nil {
		return p.garbage(line)
	}
	for _, one := range batch {
		if err := p.message(one); err != nil {
			return err
		}
	}
	return nil
}

func (p output) message(line []byte) error {
	m, err := jsonrpc.DecodeMessage(readable(line))
	if err != nil {
		return p.garbage(line)
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.ID.IsValid() {
		if len(line) > mostRequest {
			return errBigRequest
		}
		if p.unanswered.Add(1) > mostUnanswered {
			return errDeaf
		}
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.Method == listChanged {
		p.announced()
	}
	select {
	case p.read <- m:
	case <-p.closed: // no one reads any more
	}
	return nil
}

// garbage returns the error for output that is not a protocol message.
func (p output) garbage(line []byte) error {
	const shown = 80
	text := p.stderr.spec.hide(strings.ToValidUTF8(string(line[:min(len(line), looked)]), "?")) // before the cut, because otherwise a part of a secret could remain
	if runes := []rune(text); len(runes) > shown {
		text = string(runes[:shown]) + "…"
	}
	return fmt.Errorf("it was stopped: it printed %q to standard output, which is only for protocol messages; print messages for people to standard error", text)
}
