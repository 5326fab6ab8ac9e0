package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"charm.land/fang/v2"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/visible"
	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// Main runs the command line of this process and returns its exit status.
func Main() int {
	a := newApp()
	ctx, stop := a.signals()
	defer stop()
	defer a.endTelemetry()
	err := a.root().ExecuteContext(ctx)
	a.tell(err)
	return exitCode(err)
}

// help prints the help of a command with the library fang. Nothing else uses fang. Before
// fang prints an error, it asks the terminal for its colours. If the terminal does not
// answer, fang waits for seconds.
func (a *app) help(cmd *cobra.Command, _ []string) {
	if os.Getenv("TERM") == "dumb" {
		cmd.Long = ansi.Wordwrap(paragraphs(cmd.Long), a.width, "")
		new(cobra.Command).HelpFunc()(cmd, nil)
		return
	}
	dressed := a.root()
	unwrap(dressed)
	dressed.SetHelpFunc(nil)
	dressed.SetArgs(append(strings.Fields(cmd.CommandPath())[1:], "--help"))
	_ = fang.Execute(cmd.Context(), dressed, fang.WithVersion(version()), fang.WithoutManpage()) // help is never an error
}

// unwrap removes the line breaks of the source from the help texts of a command and its
// subcommands. Fang then breaks the lines to fit the terminal.
func unwrap(cmd *cobra.Command) {
	cmd.Long = paragraphs(cmd.Long)
	for _, sub := range cmd.Commands() {
		unwrap(sub)
	}
}

// paragraphs returns the text with each paragraph on one line. An empty line separates
// paragraphs.
func paragraphs(text string) string {
	all := strings.Split(text, "\n\n")
	for i, p := range all {
		all[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(all, "\n\n")
}

// signals returns a context that the first interrupt, SIGTERM or SIGHUP cancels. After
// that, an interrupt or SIGTERM ends the process.
func (a *app) signals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	arrived := make(chan os.Signal, 2)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup makes the process ignore SIGHUP
		signal.Notify(arrived, syscall.SIGHUP)
	}
	over := make(chan struct{})
	go func() { // this goroutine ends when stop is called
		select {
		case s := <-arrived:
			cancel(&interruptedError{s.String()}) // cancel first, so that the chat releases the terminal
			go a.interrupted()
		case <-over:
			return
		}
		for {
			select {
			case s := <-arrived:
				if s != syscall.SIGHUP { // a closing terminal can send SIGHUP twice
					os.Exit(exitAborted)
				}
			case <-over:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(arrived)
		close(over)
		cancel(nil)
	}
}

// interrupted calls the function that onInterrupt set.
func (a *app) interrupted() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.interrupt != nil {
		a.interrupt()
	}
}

// tell prints the error that ended a command.
func (a *app) tell(err error) {
	var exit *exitError
	var interrupted *interruptedError
	switch {
	case err == nil:
		return
	case errors.As(err, &exit) && exit.err == nil:
		return // the command already printed it
	case errors.As(err, &interrupted):
		return // the user caused it and needs no message
	}
	a.write(a.err, a.onErr.bold(a.onErr.red("belay:"))+" "+visible.All(told(err))+"\n")
	if hint := hintOf(err); hint != "" {
		a.write(a.err, a.onErr.dim("       "+hint)+"\n")
	}
}

// hintOf returns the hint of an error, or "".
func hintOf(err error) string {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.hint
	}
	if advised, ok := errors.AsType[*assembly.Error](err); ok {
		return advised.Hint
	}
	return ""
}

// told returns the text of an error without the prefix "belay: ", because tell prints this
// prefix.
func told(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "belay: "), ": belay: ", ": ")
}

func (a *app) write(w io.Writer, text string) { _, _ = io.WriteString(w, text) }
