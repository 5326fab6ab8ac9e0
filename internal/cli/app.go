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

// app holds what all commands share: the standard streams, their properties, and the common
// flags.
type app struct {
	in       io.Reader
	out, err io.Writer
	// inTerminal, outTerminal and errTerminal report whether in, out and err are
	// terminals.
	inTerminal, outTerminal, errTerminal bool
	// onOut and onErr add colours to the text for out and err, or leave it plain.
	onOut, onErr style
	width        int

	dir, store, server string
	debug              bool
	mcp                []string // files that declare MCP servers

	// userDir and environ replace the user's settings directory and the process
	// environment. Tests set them; otherwise they are empty.
	userDir string
	environ []string

	// hooks are installed in each agent, in addition to the hooks that package cli itself
	// installs.
	hooks []hook.Subscription

	mu        sync.Mutex
	interrupt func()       // called at the first interrupt signal
	noticed   func(notice) // shows notices; if nil, notices go to standard error
	observed  *observed    // made by the method observe

	assembling sync.Once
	assembles  *assembly.Assembler // set once, by the method assembler
}

// assembler returns the assembler that makes agents. It is built once, from the flags.
func (a *app) assembler() *assembly.Assembler {
	a.assembling.Do(func() {
		watched := a.observe(false)
		opts := &assembly.Options{Environ: a.environ, MCP: a.mcpFiles(), Hooks: a.hooks, Extensions: watched.extensions(), Reserved: chatCommands(), Notify: a.showAssembly}
		if a.debug {
			opts.Logger = a.logger()
		}
		opts.Logger = watched.logger(opts.Logger)
		a.assembles = assembly.New(opts)
	})
	return a.assembles
}

// showAssembly prints a notice from package assembly about the files and servers of an
// agent.
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

// newApp returns an app that uses the standard streams of this process.
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
	plainWidth = 100 // line width if the output is not a terminal
	narrowest  = 40
)

// colourful reports whether the environment allows colours.
func colourful() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// remarkf writes a line to standard error.
func (a *app) remarkf(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// logger returns the logger of the runtime. Without --debug it discards everything it gets.
func (a *app) logger() *slog.Logger {
	if !a.debug {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// serverLogger returns the logger of what works without a person who waits for it. Warnings are
// printed also without --debug.
func (a *app) serverLogger() *slog.Logger {
	if a.debug {
		return a.logger()
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// onInterrupt makes the first interrupt signal call f. Call stop to remove f.
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

// forgetTyped drops text that the user typed before the question appeared. Such text is not
// an answer to the question.
func (a *app) forgetTyped() {
	if file, ok := a.in.(*os.File); ok {
		forgetTyped(file)
	}
}

// readLine reads one line from standard input, or returns when ctx is done. In that case
// the goroutine that reads stays blocked, because a pending read cannot be cancelled.
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

// mcpFiles returns the files of the flag --mcp.
func (a *app) mcpFiles() []string {
	var files []string
	for _, file := range a.mcp {
		files = append(files, a.at(file))
	}
	return files
}
