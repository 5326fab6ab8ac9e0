package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/provider/scripted"
)

// Each error has an exit code, even if it is wrapped or joined with other errors.
//
// SPEC L-05
func TestErrorsHaveExitCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		err  error
		want int
	}{
		{"no error", nil, exitOK},
		{"any error", errors.New("odd"), exitFailed},
		{"a mistake of the user's", usage("odd"), exitUsage},
		{"a code of its own", &exitError{code: exitStuck}, exitStuck},
		{"an interrupt", &interruptedError{"interrupt"}, exitAborted},
		{"a parked turn", belay.ErrParked, exitParked},
		{"a code of its own counts before what it wraps", &exitError{code: exitUsage, err: belay.ErrParked}, exitUsage},
		{"an interrupt counts before a parked turn", errors.Join(belay.ErrParked, &interruptedError{"interrupt"}), exitAborted},
	} {
		for form, err := range map[string]error{"": test.err, ", wrapped": fmt.Errorf("more: %w", test.err), ", joined": errors.Join(errors.New("other"), test.err)} {
			if test.err == nil && form != "" {
				continue
			}
			if got := exitCode(err); got != test.want {
				t.Errorf("%s%s: exit code %d, want %d", test.rule, form, got, test.want)
			}
		}
	}
}

// A turn parks in another process after "run --session" has read the session. The command
// then exits with the code for a parked turn.
//
// SPEC L-02
func TestASessionThatParksMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": "steps: [{text: Done.}]\n"})
	d.must("run", d.model(), "--as", "s", "a task")
	var out, errs bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &errs, width: plainWidth, userDir: filepath.Join(d.dir, "user"), environ: []string{}, dir: d.dir}
	settings, err := a.settings()
	if err == nil {
		err = settings.Override("model", "model", "scripted/"+filepath.Join(d.dir, "s.yaml"))
	}
	if err != nil {
		t.Fatal(err)
	}
	o := &runOptions{session: "s"}
	err = a.atWork(t.Context(), settings, o, func(ctx context.Context, w *work) (iter.Seq2[belay.Event, error], error) {
		other := d.agent([]scripted.Step{{Calls: []scripted.Call{{Tool: "ask", Input: "{}"}}}}, belay.Options{OnAsk: belay.AskPark, Tools: []belay.Tool{askingTool()}, Authorizer: asksAlways{}})
		turn, err := other.Session("s").Turn(ctx, "another task")
		if err != nil || turn.Reason != belay.EndParked {
			t.Fatalf("the other turn is %+v, %v", turn, err)
		}
		return a.chooseTurn(ctx, w, o, "a third task")
	})
	if code := exitCode(err); code != exitParked || !errors.Is(err, belay.ErrParked) {
		t.Errorf("exit code %d for %v, want %d: %s", code, err, exitParked, &errs)
	}
}

// asksAlways requires approval for every call.
type asksAlways struct{}

func (asksAlways) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{Decision: belay.ToolAsk, Reason: "to be sure", By: "floor"}, nil
}

func askingTool() belay.Tool {
	return belay.NewRawTool(belay.ToolDeclaration{Name: "ask", Description: "asks"}, func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{}, nil
	}, nil)
}

// A chat without a terminal is a usage error. A chat that the user forced to end has the
// exit code for "interrupted".
//
// SPEC L-05
func TestChatsHaveExitCodes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": "steps: [{text: Done.}]\n"})
	if code := d.run("chat", d.model()); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	contains(t, d.err.String(), chat.ErrNoTerminal.Error())
	for err, want := range map[error]int{chat.ErrForced: exitAborted, chat.ErrNoTerminal: exitUsage, errors.New("odd"): exitFailed} {
		if got := exitCode(chatError(fmt.Errorf("chat: %w", err))); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
	if chatError(nil) != nil {
		t.Error("no error is one")
	}
}
