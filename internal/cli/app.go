package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/charmbracelet/x/term"
)

// app is shared by all commands: the streams and their properties, and the
// common flags.
type app struct {
	in       io.Reader
	out, err io.Writer
	// Which of the three are terminals.
	inTerminal, outTerminal, errTerminal bool
	// How to write to out and err.
	onOut, onErr style
	width        int

	// Common flags of all commands.
	dir, store string
	debug      bool
	mcp        []string // files that declare MCP servers

	// Where settings are read from besides the project; empty and nil mean the
	// user's directory and the process's environment.
	userDir string
	environ []string

	// hooks are installed in each agent, beside the command line's own.
	hooks []hook.Subscription

	mu        sync.Mutex
	interrupt func()       // called at the first interrupt
	noticed   func(notice) // shows notices; nil for standard error

	assembling sync.Once
	assembles  *assembly.Assembler // see assembler
}

// assembler returns what makes agents, as the flags say.
func (a *app) assembler() *assembly.Assembler {
	a.assembling.Do(func() {
		opts := &assembly.Options{Environ: a.environ, MCP: a.mcp, Hooks: a.hooks, Reserved: chatCommands(), Notify: a.showAssembly}
		if a.debug {
			opts.Logger = a.logger()
		}
		a.assembles = assembly.New(opts)
	})
	return a.assembles
}

// showAssembly shows a notice about the files and services that an agent is made of.
func (a *app) showAssembly(n assembly.Notice) {
	switch {
	case n.Later:
		a.showNotice(notice{text: n.Text, good: !n.Warning})
	case n.Label != "":
		a.remarkf("%s %s", a.onErr.yellow(n.Label+":"), n.Text)
	case n.Warning:
		a.remarkf("%s", a.onErr.yellow(n.Text))
	default:
		a.remarkf("%s", a.onErr.dim(n.Text))
	}
}

// newApp examines the streams of the process.
func newApp() *app {
	a := &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		inTerminal:  term.IsTerminal(os.Stdin.Fd()),
		outTerminal: term.IsTerminal(os.Stdout.Fd()),
		errTerminal: term.IsTerminal(os.Stderr.Fd()),
		width:       plainWidth,
	}
	a.onOut, a.onErr = style(a.outTerminal && colourful()), style(a.errTerminal && colourful())
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if w, _, err := term.GetSize(f.Fd()); err == nil && w > 0 {
			a.width = max(w, narrowest)
			break
		}
	}
	return a
}

const (
	plainWidth = 100 // width of lines that no terminal limits
	narrowest  = 40
)

// colourful reports whether the user allows colours.
func colourful() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// remarkf writes a line to standard error.
func (a *app) remarkf(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// logger returns the logger of the runtime. Without --debug it discards everything.
func (a *app) logger() *slog.Logger {
	if !a.debug {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// onInterrupt calls f at the first interrupt, until the returned function is called.
func (a *app) onInterrupt(f func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.interrupt = f
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.interrupt = nil
	}
}

// forgetTyped drops text that was typed before the question: it is not an
// answer.
func (a *app) forgetTyped() {
	if file, ok := a.in.(*os.File); ok {
		forgetTyped(file)
	}
}

// readLine reads a line that a person types. It returns when ctx is done; the
// goroutine that reads stays blocked, because nothing can wake it.
func (a *app) readLine(ctx context.Context) (string, error) {
	type typed struct {
		line string
		err  error
	}
	done := make(chan typed, 1)
	go func() {
		line, err := bufio.NewReader(a.in).ReadString('\n')
		done <- typed{line, err}
	}()
	select {
	case t := <-done:
		return t.line, t.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
