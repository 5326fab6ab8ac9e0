//go:build unix

package mcptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/toolbox"
)

// These variables are for the process that the tests kill: the file of its store, and how it
// asks the user.
const (
	storeVariable = "MCPTOOL_TEST_STORE"
	howVariable   = "MCPTOOL_TEST_HOW"
)

// pizzas is a server in this process whose tool asks the user.
func pizzas() mcptool.Server {
	return mcptool.Server{Name: "pizza", Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return curious().Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	}}
}

const twoFields = `{"type":"object","required":["size"],"properties":{"size":{"type":"string","enum":["s","l"],"enumNames":["Small","Large"]},"count":{"type":"integer"}}}`

// orders makes an agent whose model orders a pizza, on the store in a file.
func orders(ctx context.Context, file string, begun bool, opts belay.Options) (agent *belay.Agent, store *sqlite.Store, err error) {
	store, err = sqlite.Open(ctx, file, nil)
	if err != nil {
		return nil, nil, err
	}
	e, err := mcptool.New(ctx, []mcptool.Server{pizzas()}, quick(mcptool.Options{}))
	if err != nil {
		return nil, nil, err
	}
	input, err := json.Marshal(words{Text: twoFields})
	if err != nil {
		return nil, nil, err
	}
	steps := []scripted.Step{{Calls: []scripted.Call{{Tool: "pizza__order", Input: string(input)}}}, {Text: "ordered"}}
	if begun {
		steps = steps[1:]
	}
	opts.Store, opts.Extensions = store, []belay.Extension{e}
	agent, err = belay.New(scripted.New(steps, nil), &opts)
	return agent, store, err
}

// ask runs a turn in this process until the test kills it. The user is an approver or an
// asker who never answers.
func ask() int {
	ctx := context.Background()
	never := func() {
		tell(os.Getenv(rollVariable), "asked")
		stay()
	}
	opts := belay.Options{Approver: approverFunc(func(context.Context, belay.Question) (belay.Decision, error) { never(); return belay.Decision{}, nil })}
	if os.Getenv(howVariable) == "live" {
		opts.Asker = askerFunc(func(context.Context, belay.Inquiry) (string, error) { never(); return "", nil })
	}
	agent, _, err := orders(ctx, os.Getenv(storeVariable), false, opts)
	if err == nil {
		_, err = agent.Session("s").Turn(ctx, "order")
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

type approverFunc func(context.Context, belay.Question) (belay.Decision, error)

func (f approverFunc) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	return f(ctx, q)
}

// A server's question survives a process that is killed while it asks. Anybody can answer it
// in the store. Then the call is made again, and the server gets the answers. If the call was
// held open at the server, the call is not repeated, and the model learns that its outcome
// is unknown.
//
// SPEC E-09
func TestAQuestionSurvivesAKill(t *testing.T) { //nolint:paralleltest // the store is in use by one process at a time
	for how, want := range map[string]string{ //nolint:paralleltest // likewise
		"stored": `accept {"count":3,"size":"l"}`,
		"live":   "The process ended during this call",
	} {
		t.Run(how, func(t *testing.T) {
			file, desk := filepath.Join(t.TempDir(), "belay.db"), newDesk(t)
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			process := exec.CommandContext(t.Context(), program, "-test.run=^$")
			process.Env = append(os.Environ(), serverVariable+"=asks", raceVariable+"="+noPause, rollVariable+"="+desk.addr, storeVariable+"="+file, howVariable+"="+how)
			process.Stderr = os.Stderr
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			desk.next() // the process runs
			if said := desk.next().text; said != "asked" {
				t.Fatalf("the process reported %q", said)
			}
			if err := process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = process.Wait() // it was killed

			agent, store, err := orders(t.Context(), file, true, belay.Options{OnAsk: belay.AskPark})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = agent.Close(context.Background())
				_ = store.Close()
			}()
			if how == "stored" {
				answer(t, store, "MCP server pizza asks: Which pizza? [2J\nsize\n  1. Small\n  2. Large", "large")
				if turn, err := belay.Await(agent.Session("s").Resume(t.Context())); err != nil || turn.Reason != belay.EndParked {
					t.Fatalf("the turn ended %+v: %v", turn, err)
				}
				answer(t, store, "MCP server pizza asks: Which pizza? [2J\ncount\n(optional", "3")
			}
			if turn, err := belay.Await(agent.Session("s").Resume(t.Context())); err != nil || turn.Reason != belay.EndTurn {
				t.Fatalf("the turn ended %+v: %v", turn, err)
			}
			var got string
			for m, err := range agent.Session("s").Messages(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range m.Parts {
					if p.Result != nil {
						got = p.Result.Text
					}
				}
			}
			if !strings.Contains(got, want) {
				t.Errorf("result = %q, want %q", got, want)
			}
		})
	}
}

// answer answers the only open question of a store.
func answer(t *testing.T, store *sqlite.Store, begins, said string) {
	t.Helper()
	n := 0
	for q, err := range belay.Questions(t.Context(), store, belay.ApprovalFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; !strings.HasPrefix(q.Reason, begins) {
			t.Errorf("the question is %q, want %q", q.Reason, begins)
		}
		d, err := toolbox.Answer(q, "ann", said)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Decide(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Fatalf("%d questions are open, want 1", n)
	}
}
