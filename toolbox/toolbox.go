package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/belay-run/belay"
)

// Options are the options of [New].
type Options struct {
	// ReadOnly leaves out write, edit and shell. Defaults to false.
	ReadOnly bool
	// NoShell leaves out shell. Defaults to false.
	NoShell bool
	// Extra are more directories that the file tools may use, such as
	// belay.Options.SpillDir. A call must use an absolute path for a file in these
	// directories. Defaults to none.
	Extra []*os.Root
	// Snapshots keep files as they were before write, edit and shell change them, so that a
	// session can be rewound. Defaults to none.
	Snapshots *Snapshots
	// Background lets the shell start commands in the background. Add it to the extensions
	// of the agent too. Defaults to none: then the shell cannot.
	Background *Background
	// Shell has the settings of the shell. Its Dir defaults to the project. Nil means the
	// defaults.
	Shell *ShellOptions
}

// files is the state that the file tools share.
type files struct {
	project *place
	extra   places
	read    *memory
	change  sync.Mutex // held while a file is changed

	snapshots  *Snapshots  // nil for none
	background *Background // nil for none
}

// failure is an error that is shown to the model as a result.
type failure struct {
	class belay.ResultClass
	text  string
}

func (f *failure) Error() string { return f.text }

func failf(class belay.ResultClass, format string, args ...any) error {
	return &failure{class, fmt.Sprintf(format, args...)}
}

// lookOnly are the traits of tools that change nothing.
var lookOnly = belay.ToolTraits{Idempotent: true}

// newTool makes a tool of a function. It decodes the input for the function, and turns
// failures into results.
func newTool[In any](name, description, schema string, traits belay.ToolTraits, run func(context.Context, *belay.Invocation, *In) (belay.Result, error)) belay.Tool { //nolint:ireturn // a tool is used through the interface
	return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: description, InputSchema: json.RawMessage(schema)},
		func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
			var in In
			if err := call.Decode(&in); err != nil {
				return belay.Failed(belay.ClassInvalid, "input: "+err.Error()), nil //nolint:nilerr // the result contains the error
			}
			result, err := run(ctx, call, &in)
			if err != nil && ctx.Err() != nil {
				return belay.Result{}, context.Cause(ctx) // the loop handles a cancelled context
			}
			if f, ok := errors.AsType[*failure](err); ok {
				return belay.Failed(f.class, f.text), nil
			}
			return result, err
		}, &traits)
}

// answer makes a result of a text and render data.
func answer(text string, view any) (belay.Result, error) {
	render, err := json.Marshal(view)
	if err != nil {
		return belay.Result{}, fmt.Errorf("render data: %w", err)
	}
	return belay.Result{Text: text, Render: render}, nil
}

// explain turns an error of the operating system into a failure for the model.
func (f *files) explain(at spot, err error) error {
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	switch {
	case escapes(err):
		return f.outside(at.shown)
	case errors.Is(err, fs.ErrNotExist):
		return failf(belay.ClassNotFound, "%q does not exist%s", at.shown, cmp.Or(at.resembling(), "."))
	case errors.Is(err, fs.ErrPermission):
		return failf(belay.ClassDenied, "%q: permission denied.", at.shown)
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // drop the path, because it may be of a temporary file
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		err = l.Err
	}
	if strings.Contains(err.Error(), "not a directory") {
		return failf(belay.ClassNotFound, "%q does not exist: a part of the path is a file and not a directory.", at.shown)
	}
	return failf(belay.ClassFailed, "%q: %v.", at.shown, err)
}

// plural returns a count with its noun: 1 line, 2 lines.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size returns a number of bytes as text, such as "1.5 KiB".
func size(n int64) string {
	switch {
	case n < 1<<10:
		return plural(int(n), "byte", "bytes")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
}
