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
	err := a.root().ExecuteContext(ctx)
	a.tell(err)
	return exitCode(err)
}

// help shows the help of a command, as fang dresses it. Fang is given nothing
// else to do: it asks the terminal for its colours before it shows an error, and
// waits for seconds where nobody answers.
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
	_ = fang.Execute(cmd.Context(), dressed, fang.WithVersion(version()), fang.WithoutManpage()) // whoever asks for help gets some
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

// signals returns a context that ends with the first interrupt. The second one
// ends the process.
func (a *app) signals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	arrived := make(chan os.Signal, 2)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		signal.Notify(arrived, syscall.SIGHUP)
	}
	over := make(chan struct{})
	go func() { // until stop is called
		select {
		case s := <-arrived:
			cancel(&interruptedError{s.String()}) // first: whoever holds the terminal lets go of it
			go a.interrupted()
		case <-over:
			return
		}
		for {
			select {
			case s := <-arrived:
				if s != syscall.SIGHUP { // one that a terminal sends as it closes may come twice
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

// interrupted calls the function that waits for an interrupt.
func (a *app) interrupted() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.interrupt != nil {
		a.interrupt()
	}
}

// tell writes the error that ends a command.
func (a *app) tell(err error) {
	var exit *exitError
	var interrupted *interruptedError
	switch {
	case err == nil:
		return
	case errors.As(err, &exit) && exit.err == nil:
		return // it is told
	case errors.As(err, &interrupted):
		return // whoever interrupts knows
	}
	a.write(a.err, a.onErr.bold(a.onErr.red("belay:"))+" "+visible.All(told(err))+"\n")
	if hint := hintOf(err); hint != "" {
		a.write(a.err, a.onErr.dim("       "+hint)+"\n")
	}
}

// hintOf returns what an error advises to do, or nothing.
func hintOf(err error) string {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.hint
	}
	if advised, ok := errors.AsType[*assembly.Error](err); ok {
		return advised.Hint
	}
	return ""
}

// told returns the text of an error without the program's name, which is printed before it.
func told(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "belay: "), ": belay: ", ": ")
}

func (a *app) write(w io.Writer, text string) { _, _ = io.WriteString(w, text) }
