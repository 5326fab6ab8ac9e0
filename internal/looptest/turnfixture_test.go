package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// rich is an agent for tests of complete turns. Each of the messages below leads to a
// different kind of turn: see richStep.
type rich struct {
	agent   *belay.Agent
	session *belay.Session
	model   *strictModel
	store   *memstore.Store
	phases  *phaseLog
}

// These are the messages that a rich session knows.
const (
	richWork  = "do it" // two steps with tools, a compaction, a continuation
	richAgain = "again" // one answer
	richFail  = "fail"  // the model fails
	richOne   = "one"   // one call that needs approval, then an answer
)

// newRich makes a rich agent. change may be nil.
func newRich(t testing.TB, change func(*belay.Options)) *rich {
	t.Helper()
	r := &rich{store: memstore.New(nil), phases: new(phaseLog)}
	r.model = &strictModel{t: t, Model: scripted.New([]scripted.Step{{Compute: richStep}}, &scripted.Options{Repeat: true, Name: "test/rich"})}
	opts := &belay.Options{
		Instructions: "You are careful.",
		Tools: []belay.Tool{
			echoTool("read"), echoTool("write"), echoTool("shell"),
			anyTool("broken", func(context.Context, *belay.Invocation) (belay.Result, error) {
				return belay.Result{}, errors.New("it is broken")
			}, nil),
		},
		Extensions: []belay.Extension{notes{}},
		Planner: plannerFunc(func(belay.TurnSoFar) (belay.PreflightPlan, error) {
			return belay.PreflightPlan{Queries: []string{"ada"}}, nil
		}),
		Approver: approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
			return belay.Decision{Allow: true, By: "ada"}, nil
		}),
		Hooks:      append(richHooks(), r.phases.everywhere()...),
		Store:      r.store,
		Compaction: belay.Compaction{Window: 1000},
	}
	if change != nil {
		change(opts)
	}
	r.agent = agentOf(t, r.model, opts)
	r.session = r.agent.Session("s")
	return r
}

// richStep returns the model's next response. It depends on the conversation.
func richStep(_ context.Context, req *belay.Request) (scripted.Step, error) {
	usage := belay.Usage{In: 100, Out: 5}
	said, last := "", 0
	for _, m := range req.Messages {
		switch {
		case m.Kind == belay.KindUser && m.Seq == 0:
			return scripted.Step{Text: "the gist", Usage: belay.Usage{In: 500, Out: 50}}, nil
		case m.Kind == belay.KindUser:
			said, last = m.Text(), 0
		case m.Kind == belay.KindCompaction:
			said, last = richWork, 0
		case m.Role == belay.RoleAssistant:
			last = m.Step
		}
	}
	one := scripted.Call{ID: "c1", Tool: "write", Input: `{"path":"x"}`}
	switch {
	case strings.Contains(said, richAgain):
		return scripted.Step{Text: "fine", Usage: usage}, nil
	case strings.Contains(said, richFail):
		return scripted.Step{}, &belay.ModelError{Kind: belay.ModelAuth, Err: errors.New("no key")}
	case strings.Contains(said, richOne) && last == 0:
		return scripted.Step{Calls: []scripted.Call{one}, Usage: usage}, nil
	case strings.Contains(said, richOne):
		return scripted.Step{Text: "done", Usage: usage}, nil
	case last == 0:
		return scripted.Step{Text: "Let me see.", Usage: usage, Calls: []scripted.Call{
			{ID: "c1", Tool: "read", Input: `{"path":"a"}`},
			{ID: "c2", Tool: "shell", Input: `{"run":"rm"}`},
			{ID: "c3", Tool: "write", Input: `{"path":"a"}`},
			{ID: "c4", Tool: "lookup", Input: `{"name":"ada"}`},
		}}, nil
	case last == 1:
		return scripted.Step{Usage: belay.Usage{In: 900, Out: 20}, Calls: []scripted.Call{
			{ID: "c5", Tool: "broken"},
			{ID: "c6", Tool: "read", Input: `{"path":"b"}`},
		}}, nil
	case last == 2:
		return scripted.Step{Text: "done?", Usage: usage}, nil
	default:
		return scripted.Step{Text: "done", Usage: usage}, nil
	}
}

// richHooks returns hooks that contribute at every phase.
func richHooks() []hook.Subscription {
	return []hook.Subscription{
		belay.UserPromptSubmit.On("rich/prompt", func(_ context.Context, in belay.UserPrompt) (belay.PromptVerdict, error) {
			return belay.RewritePrompt("please " + in.Text()), nil
		}, &hook.Options{Capabilities: hook.CanRewritePrompt}),
		belay.TurnPrePolicy.On("rich/policy", func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
			return belay.SetPolicy(belay.MaxSteps.Set(50)), nil
		}, nil),
		belay.TurnPrePromptContext.On("rich/context", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
			return belay.PromptContext{Entries: []belay.ContextEntry{{ID: "who", Text: "the user is Ada"}}}, nil
		}, nil),
		belay.TurnPostPreflightPromptContext.On("rich/preflight", func(_ context.Context, in belay.Preflight) (belay.PromptContext, error) {
			return belay.PromptContext{Entries: []belay.ContextEntry{{ID: "found", Text: "looked up " + in.Plan().Queries[0]}}}, nil
		}, nil),
		belay.TurnPreToolMaterialization.On("rich/bundle", func(context.Context, belay.TurnSoFar) (belay.ToolBundles, error) {
			return belay.ToolBundles{Bundles: []belay.ToolBundle{{ID: "notes", Route: "notes", Tools: []belay.ToolDeclaration{{Name: "lookup", Description: "looks notes up"}}}}}, nil
		}, nil),
		belay.TurnPrePromptCompile.On("rich/section", func(context.Context, belay.TurnSoFar) (belay.PromptSections, error) {
			return belay.PromptSections{Sections: []belay.PromptSection{{ID: "tone", Title: "Tone", Body: "Be brief."}}}, nil
		}, nil),
		belay.ToolPre.On("rich/clean", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			var in struct{ Path string }
			if err := call.Decode(&in); err != nil {
				return belay.Pass, err
			}
			return belay.RewriteInput(map[string]string{"path": "/" + in.Path})
		}, &hook.Options{Capabilities: hook.CanRewriteInput, Match: hook.Match{Tools: []string{"read"}}}),
		belay.ToolPre.On("rich/gate", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			switch call.Tool() {
			case "shell":
				return belay.Deny("no shells"), nil
			case "write":
				return belay.Ask("it writes"), nil
			default:
				return belay.Pass, nil
			}
		}, nil),
		belay.ToolPost.On("rich/redact", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
			return belay.RewriteResult(strings.ReplaceAll(r.Text(), "broken", "[redacted]")), nil
		}, &hook.Options{Capabilities: hook.CanRewriteOutput, Match: hook.Match{Tools: []string{"broken"}}}),
		belay.TurnPreCompaction.On("rich/gist", func(context.Context, belay.CompactionAhead) (belay.CompactionAdvice, error) {
			return belay.CompactionAdvice{Instructions: belay.Tell("keep names")}, nil
		}, nil),
		belay.TurnStop.On("rich/stop", func(_ context.Context, in belay.StopAttempt) (belay.StopVerdict, error) {
			if in.Text() == "done?" && in.Continuations() == 0 {
				return belay.Continue("say that it is done"), nil
			}
			return belay.StopVerdict{}, nil
		}, nil),
	}
}

// notes is the extension that runs the tools of the rich bundle.
type notes struct{}

func (notes) Name() string { return "notes" }

func (notes) Route(_ context.Context, call *belay.Invocation) (belay.Result, error) {
	return belay.Result{Text: "looked up " + string(call.Input)}, nil
}

// plannerFunc makes a planner from a function.
type plannerFunc func(belay.TurnSoFar) (belay.PreflightPlan, error)

func (f plannerFunc) Plan(_ context.Context, turn belay.TurnSoFar) (belay.PreflightPlan, error) {
	return f(turn)
}

// phaseLog records which phases fired, with their inputs.
type phaseLog struct {
	mu    sync.Mutex
	fired []firedPhase
}

type firedPhase struct {
	name, turn string
	step       int
	input      map[string]any
}

// everywhere returns a subscription for every phase. It only logs the phase, and runs
// before all other hooks except those that rewrite.
func (l *phaseLog) everywhere() []hook.Subscription {
	var subs []hook.Subscription
	for _, p := range everyPhase() {
		subs = append(subs, p.on("log", func(_ context.Context, in any) (any, error) {
			return nil, l.add(p.Name(), in)
		}, &hook.Options{Priority: -1000}))
	}
	return subs
}

func (l *phaseLog) add(name string, in any) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	fired := firedPhase{name: name}
	if err := json.Unmarshal(data, &fired.input); err != nil {
		return err
	}
	if at, ok := in.(interface {
		Turn() string
		Step() int
	}); ok {
		fired.turn, fired.step = at.Turn(), at.Step()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fired = append(l.fired, fired)
	return nil
}

// all returns the fired phases and clears the log.
func (l *phaseLog) all() []firedPhase {
	l.mu.Lock()
	defer l.mu.Unlock()
	fired := l.fired
	l.fired = nil
	return fired
}

// count returns how often a phase fired.
func (l *phaseLog) count(phase string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, f := range l.fired {
		if f.name == phase {
			n++
		}
	}
	return n
}

// ends returns the turns that turn.post_turn got, as turn number and reason.
func (l *phaseLog) ends() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ends []string
	for _, f := range l.fired {
		if f.name == belay.TurnPostTurn.Name() {
			number, _, _ := strings.Cut(f.turn, "-")
			ends = append(ends, fmt.Sprintf("%s %s", number, f.input["reason"]))
		}
	}
	return ends
}

// strictModel rejects a conversation that is not well formed, as providers do, and keeps
// the requests.
type strictModel struct {
	belay.Model

	t        testing.TB
	mu       sync.Mutex
	requests []*belay.Request
}

func (m *strictModel) Info() belay.ModelInfo { return belay.ModelInfo{Name: "test/rich"} }

func (m *strictModel) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	if fault := conversationFault(req.Messages); fault != "" {
		m.t.Errorf("a request is not well formed: %s", fault)
	}
	if n := len(req.Messages); n == 0 || req.Messages[n-1].Role != belay.RoleUser {
		m.t.Error("a request does not end on the user's side")
	}
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	return m.Model.Stream(ctx, req)
}

// sent returns the requests so far.
func (m *strictModel) sent() []*belay.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// told reports whether one of the requests contains the text.
func (m *strictModel) told(text string) bool {
	return slices.ContainsFunc(m.sent(), func(req *belay.Request) bool {
		return slices.ContainsFunc(req.Messages, func(msg *belay.Message) bool {
			return slices.ContainsFunc(msg.Parts, func(p belay.Part) bool { return strings.Contains(p.Text, text) })
		})
	})
}

// conversationFault checks a conversation by the rules that all providers share. It returns
// what is wrong, or "". The first message is the user's. Each call has one result in the
// next message, and no result is without its call. No message is empty, and all text is
// UTF-8.
func conversationFault(messages []*belay.Message) string {
	if len(messages) > 0 && messages[0].Role != belay.RoleUser {
		return "it begins with " + string(messages[0].Role)
	}
	var open []*belay.CallPart
	for i, m := range messages {
		if len(m.Parts) == 0 {
			return fmt.Sprintf("message %d is empty", i)
		}
		if i > 0 && m.Role == belay.RoleAssistant && messages[i-1].Role == belay.RoleAssistant {
			return fmt.Sprintf("messages %d and %d are both the assistant's", i-1, i)
		}
		var results []*belay.ResultPart
		for _, p := range m.Parts {
			if p.Result != nil {
				results = append(results, p.Result)
			}
			if (p.Type == belay.PartCall) != (p.Call != nil) || (p.Type == belay.PartResult) != (p.Result != nil) {
				return fmt.Sprintf("message %d has a part that is not what it says", i)
			}
			if p.Type == belay.PartText && (strings.TrimSpace(p.Text) == "" || strings.ToValidUTF8(p.Text, "") != p.Text) {
				return fmt.Sprintf("message %d has text that is empty or not UTF-8", i)
			}
		}
		if len(results) != len(open) {
			return fmt.Sprintf("message %d has %d results for %d calls", i, len(results), len(open))
		}
		for n, r := range results {
			if r.Call != open[n].ID || r.Tool != open[n].Tool {
				return fmt.Sprintf("message %d: result %d is not of call %q", i, n, open[n].ID)
			}
		}
		open = m.Calls()
	}
	if len(open) > 0 {
		return fmt.Sprintf("call %q has no result", open[0].ID)
	}
	return ""
}

// sound fails the test if the stored transcript is not well formed.
func (r *rich) sound(t testing.TB) {
	t.Helper()
	var all []*belay.Message
	for m, err := range r.store.Read(context.Background(), "s", 0) {
		if errors.Is(err, belay.ErrNotFound) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	var conversation []*belay.Message
	for i, m := range all {
		if m.Seq != int64(i+1) {
			t.Errorf("message %d has the number %d", i+1, m.Seq)
		}
		if !m.IsCompaction { // a summary is not part of the conversation itself
			conversation = append(conversation, m)
		}
	}
	if fault := conversationFault(conversation); fault != "" {
		t.Errorf("the transcript is not well formed: %s", fault)
	}
}

// goesOn runs another turn, which must succeed and leave a well-formed transcript.
func (r *rich) goesOn(t testing.TB) {
	t.Helper()
	turn, err := r.session.Turn(context.Background(), richAgain)
	if err != nil || turn.Reason != belay.EndTurn || turn.Text != "fine" {
		t.Errorf("the next turn: %+v, %v, want it to end well", turn, err)
	}
	r.sound(t)
}

// recorded fails the test if the journal does not have one run of the subscription "log"
// for each fired phase.
func (r *rich) recorded(t testing.TB) {
	t.Helper()
	r.phases.mu.Lock()
	fired := len(r.phases.fired)
	r.phases.mu.Unlock()
	if got := len(r.runsOf(t, "log")); got != fired {
		t.Errorf("the journal tells of %d runs, want %d", got, fired)
	}
}

// riding is a store that hides the type of its journal. So the agent stores the records of
// hooks in the store's commits, as it does with a database.
type riding struct{ *memstore.Store }

func (s riding) Journal() hook.Journal { return slowJournal{s.Store.Journal()} }

type slowJournal struct{ hook.Journal }

// runsOf returns the records of a subscription.
func (r *rich) runsOf(t testing.TB, subscription string) []hook.Run {
	t.Helper()
	journal, ok := r.store.Journal().(hook.ListJournal)
	if !ok {
		t.Fatal("the journal cannot be read")
	}
	var runs []hook.Run
	for run, err := range journal.List(context.Background(), hook.Filter{Subscription: subscription}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	return runs
}
