// Package channeltest has what the tests of the channels share: a store with approvals, and
// waiting for something to happen.
package channeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/channel"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/toolbox"
)

// Project is a store with an agent whose calls need approval.
type Project struct {
	Store *sqlite.Store
	Dir   string
	t     testing.TB
	agent *belay.Agent
}

// model calls the tool that the user's message names, and then says that it is done.
type model struct{}

func (model) Info() belay.ModelInfo { return belay.ModelInfo{Name: "test/model"} }

// Stream implements belay.Model.
func (model) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		answer := belay.Response{Parts: []belay.Part{belay.Text("done")}, StopReason: belay.StopEnd}
		if last := req.Messages[len(req.Messages)-1]; last.Kind == belay.KindUser {
			tool, input, _ := strings.Cut(last.Text(), " ")
			answer.StopReason = belay.StopToolUse
			answer.Parts = []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "c1", Tool: tool, Input: json.RawMessage(input)}}}
		}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

// New opens a store in a directory of the test.
func New(t testing.TB) *Project {
	t.Helper()
	p := &Project{Dir: t.TempDir(), t: t}
	var err error
	if p.Store, err = sqlite.Open(t.Context(), filepath.Join(p.Dir, "belay.db"), nil); err != nil {
		t.Fatal(err)
	}
	var tools []belay.Tool
	for _, name := range []string{"shell", "edit"} {
		tools = append(tools, belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: name, InputSchema: json.RawMessage(`{"type": "object"}`)},
			func(context.Context, *belay.Invocation) (belay.Result, error) { return belay.Result{Text: "ran"}, nil }, nil))
	}
	ask := belay.ToolPre.On("careful", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Ask("it changes things"), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"shell", "edit"}}})
	p.agent, err = belay.New(model{}, &belay.Options{Store: p.Store, Tools: tools, Hooks: []hook.Subscription{ask}, OnAsk: belay.AskPark, Extensions: []belay.Extension{toolbox.AskUser()}, ReleaseIdle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.agent.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := p.Store.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Run runs a channel of the project until stop is called or the test ends. One user may decide.
func (p *Project) Run(name string, ch channel.Channel, approver string) (runner *channel.Runner, stop func()) {
	p.t.Helper()
	runner, err := channel.New(name, ch, p.Store, &channel.Options{
		Dir: p.Dir, Approvers: []string{approver}, Link: Link, Poll: 5 * time.Millisecond,
		Pause: time.Nanosecond, // the pauses grow to a millisecond
	})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); runner.Run(ctx) }()
	stop = func() {
		cancel()
		<-ended
		http.DefaultClient.CloseIdleConnections() // they have goroutines
	}
	p.t.Cleanup(stop)
	return runner, stop
}

// Link is the address of an approval in the console.
func Link(approval string) string { return "https://belay.example.com/approvals/" + approval }

// Status returns what a channel of the project remembers.
func (p *Project) Status(name string) *channel.Status {
	p.t.Helper()
	s, err := channel.ReadStatus(p.Dir, name)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// Decided returns how an approval was decided: whether it was allowed, by whom, and why. It
// returns "" if it is open.
func (p *Project) Decided(id string) string {
	p.t.Helper()
	d := p.Decision(id)
	if d == nil {
		return ""
	}
	return fmt.Sprintf("%v %s %s", d.Allow, d.By, d.Reason)
}

// Ask starts a turn in which the model calls a tool. The turn waits for the approval that is
// returned.
func (p *Project) Ask(session, tool, input string) belay.Approval {
	p.t.Helper()
	turn, err := p.agent.Session(session).Turn(p.t.Context(), tool+" "+input)
	if err != nil || turn.Reason != belay.EndParked || len(turn.Waits) != 1 {
		p.t.Fatalf("the turn ends with %+v, %v, want it parked", turn, err)
	}
	return turn.Waits[0].Approval
}

// Abandon ends the turn of a session. Its approval is withdrawn.
func (p *Project) Abandon(session string) {
	p.t.Helper()
	if _, err := p.agent.Session(session).Abandon(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// Decide decides an approval as somebody would elsewhere.
func (p *Project) Decide(a *belay.Approval, allow bool, by string) {
	p.t.Helper()
	if _, err := p.Store.Decide(p.t.Context(), belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: allow, By: by, Time: time.Now()}); err != nil {
		p.t.Fatal(err)
	}
}

// Decision returns how an approval was decided, or nil.
func (p *Project) Decision(id string) *belay.Decision {
	p.t.Helper()
	for a, err := range p.Store.Approvals(context.Background(), belay.ApprovalFilter{}) {
		if err != nil {
			p.t.Fatal(err)
		}
		if a.ID == id {
			return a.Decided
		}
	}
	p.t.Fatalf("there is no approval %s", id)
	return nil
}

// patience is how long Eventually waits. It is long, because the machine may be busy.
const patience = 2 * time.Minute

// Eventually polls until f reports true.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		<-tick.C
	}
}
