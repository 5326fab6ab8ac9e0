package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// mostPiped is how much of standard input can be a part of a task.
	mostPiped = 1 << 20
	// patienceForInput is how long a command with a task waits for the first byte of standard
	// input. Some programs start commands with a pipe that they never close.
	patienceForInput = 3 * time.Second
)

// task returns the user's task, or "" to resume a turn. Standard input is added to the task, or
// is the task if there is no other.
func (a *app) task(ctx context.Context, o *runOptions, args []string) (string, error) {
	resumes := o.goOn || o.session != ""
	switch {
	case len(args) == 0 && resumes:
		return "", nil
	case len(args) == 1 && args[0] != "-" && strings.TrimSpace(args[0]) == "":
		return "", usage("the task is empty")
	case len(args) == 1 && args[0] == "-":
		text, err := a.standardInput(ctx, 0)
		if err == nil && strings.TrimSpace(text) == "" {
			err = usage("the task is empty: standard input had nothing to read")
		}
		return text, err
	}
	piped := ""
	if a.hasInput() {
		var err error
		if piped, err = a.standardInput(ctx, patienceForInput); err != nil {
			return "", err
		}
	}
	switch {
	case len(args) == 0 && strings.TrimSpace(piped) == "":
		return "", &exitError{
			code: exitUsage, err: errors.New("there is no task: give it in quotes, or - to read it from standard input"),
			hint: `such as: belay run "tidy the changelog"`,
		}
	case len(args) == 0:
		return piped, nil
	case strings.TrimSpace(piped) == "":
		return args[0], nil
	default:
		return args[0] + "\n\nStandard input:\n\n" + strings.TrimRight(piped, "\n") + "\n", nil
	}
}

// hasInput reports whether standard input is a pipe or a file. A terminal is for approvals, and
// /dev/null has nothing to read.
func (a *app) hasInput() bool {
	if a.inTerminal {
		return false
	}
	file, ok := a.in.(*os.File)
	if !ok {
		return a.in != nil
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&(os.ModeCharDevice|os.ModeDevice|os.ModeDir) == 0
}

// standardInput reads standard input to its end. If nothing arrives within the patience, it says so
// and returns "". A patience of 0 means to wait.
func (a *app) standardInput(ctx context.Context, patience time.Duration) (string, error) {
	type read struct {
		text []byte
		err  error
	}
	first, whole := make(chan read, 1), make(chan read, 1)
	go func() { // a read of a pipe cannot be stopped: it ends with the process
		one := make([]byte, 1)
		n, err := io.ReadFull(a.in, one)
		first <- read{one[:n], err}
		if err != nil {
			return
		}
		rest, err := io.ReadAll(io.LimitReader(a.in, mostPiped))
		whole <- read{slices.Concat(one, rest), err}
	}()
	var late <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	var got read
	select {
	case got = <-first:
	case <-late:
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("nothing came from standard input for %v, so it is not a part of the task; add </dev/null if there is nothing to read", patience)))
		return "", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if got.err == nil {
		select {
		case got = <-whole:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	switch {
	case errors.Is(got.err, io.EOF):
		return "", nil
	case got.err != nil:
		return "", fmt.Errorf("read standard input: %w", got.err)
	case len(got.text) > mostPiped:
		return "", usage("standard input has more than 1 MiB: put it into a file, and name the file in the task")
	case !utf8.Valid(got.text):
		return "", usage("standard input is not text: put it into a file, and name the file in the task")
	}
	return string(got.text), nil
}
