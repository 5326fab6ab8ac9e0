package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/phasejson"
	"github.com/belay-run/belay/subagent"
)

// hookStory is a turn whose hooks are all at one phase.
type hookStory struct {
	Phase string `json:"phase"`
	// If Blocking is set, the story has one hook of this kind, which blocks the turn. If
	// Blocking is empty, the story has all hooks that can run at the same time.
	Blocking hook.HandlerKind `json:"blocking,omitempty"`
	// URL is the address of the webhooks.
	URL string `json:"url"`
}

// storyHook is a hook of a story.
type storyHook struct {
	id        string
	kind      hook.HandlerKind
	execution hook.Execution
	options   []string // lines for the hook in the hooks file
}

// outsideKinds are the kinds of handlers that leave the process.
var outsideKinds = []hook.HandlerKind{hook.HandlerCommand, hook.HandlerWorker, hook.HandlerWebhook}

// hooks returns the hooks of the story.
func (s hookStory) hooks() (all []storyHook) {
	add := func(kind hook.HandlerKind, execution hook.Execution, name string, options ...string) {
		all = append(all, storyHook{string(kind) + "-" + name, kind, execution, append(options, "timeout: 10m")})
	}
	if s.Blocking != "" {
		add(s.Blocking, hook.Blocking, "blocking")
		return all
	}
	phase, err := phasejson.New(s.Phase)
	if err != nil {
		panic(err)
	}
	for _, kind := range outsideKinds {
		add(kind, hook.Blocking, "concurrent", "concurrent: true")
		add(kind, hook.Deadline, "deadline", "execution: deadline")
	}
	if phase.Info().Kind == hook.Gate {
		return all // the turn waits for every hook of a gate, so a gate has no detached hooks
	}
	// The negative priorities start these hooks first, so that they do not wait for the
	// others.
	for _, kind := range append([]hook.HandlerKind{hook.HandlerGo}, outsideKinds...) {
		add(kind, hook.FireAndRecord, "fired", "execution: fire_and_record", "priority: -1")
		add(kind, hook.Background, "background", "execution: background", "priority: -2", "idempotent: true", "retry: {attempts: 3, delay: 1ms}")
	}
	return all
}

// These are the programs of command and worker hooks. They write their id to the pipe
// inside, and then wait for a line from the pipe gate.
const (
	commandHook = "echo \"$1\" > inside\nread -r line < gate\n"
	workerHook  = `while read -r call; do
	n=${call#*'"id":'}
	n=${n%%,*}
	case $call in
	*'"method":"hello"'*) answer='{"v":1}' ;;
	*'"method":"run"'*)
		echo "$1" > inside
		read -r line < gate
		answer=null
		;;
	*) continue ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$n" "$answer"
done
`
)

// The files of a story.
const (
	insideFile  = "inside" // a pipe with the ids of the hooks that have begun
	gateFile    = "gate"   // a pipe with one line for each hook that may return
	hooksFile   = "hooks.yaml"
	commandFile = "command.sh"
	workerFile  = "worker.sh"
)

// write writes the hooks file and the programs of its hooks.
func (s hookStory) write(dir string) error {
	var text strings.Builder
	for _, h := range s.hooks() {
		var how string
		switch h.kind {
		case hook.HandlerCommand:
			how = fmt.Sprintf("command: [sh, ./%s, %s]", commandFile, h.id)
		case hook.HandlerWorker:
			how = fmt.Sprintf("worker: [sh, ./%s, %s]", workerFile, h.id)
		case hook.HandlerWebhook:
			how = fmt.Sprintf("webhook: {url: '%s/%s'}", s.URL, h.id)
		default:
			continue
		}
		fmt.Fprintf(&text, "  - id: %s\n    phase: %s\n    inherit: false\n    %s\n    %s\n", h.id, s.Phase, how, strings.Join(h.options, "\n    "))
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, commandFile), []byte(commandHook), 0o600),
		os.WriteFile(filepath.Join(dir, workerFile), []byte(workerHook), 0o600),
		os.WriteFile(filepath.Join(dir, hooksFile), []byte("hooks:\n"+text.String()), 0o600),
	)
}

// goHooks returns the hooks that are Go functions.
func (s hookStory) goHooks(handle func(ctx context.Context, id string) error) ([]hook.Subscription, error) {
	phase, err := phasejson.New(s.Phase)
	if err != nil {
		return nil, err
	}
	var subs []hook.Subscription
	for _, h := range s.hooks() {
		if h.kind != hook.HandlerGo {
			continue
		}
		opts := &hook.Options{Execution: h.execution, Priority: -1, NoInherit: true, Timeout: 10 * time.Minute}
		if h.execution == hook.Background {
			opts.Priority, opts.Idempotent, opts.Retry = -2, true, hook.Retry{Attempts: 3, Delay: time.Millisecond}
		}
		subs = append(subs, phase.On(h.id, func(ctx context.Context, _ phasejson.Call) (json.RawMessage, error) {
			return nil, handle(ctx, h.id)
		}, opts))
	}
	return subs, nil
}

// stage is the agent of a story, with its hooks.
type stage struct {
	*belay.Agent
	declared *declare.Set
}

func (s *stage) close(ctx context.Context) error {
	return errors.Join(s.Close(ctx), s.declared.Close())
}

// cast makes the agent of the story. Hooks in Go call handle.
func (s hookStory) cast(dir string, store belay.Store, handle func(ctx context.Context, id string) error) (*stage, error) {
	subs, err := s.goHooks(handle)
	if err != nil {
		return nil, err
	}
	declared, err := declare.Load(dir, filepath.Join(dir, hooksFile))
	if err != nil {
		return nil, err
	}
	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Allowlist: []string{s.URL}})
	if err != nil {
		return nil, err
	}
	subs = append(subs, set.Subscriptions()...)
	subs = append(subs, belay.ToolPre.On("story", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
		switch c.Tool() {
		case "risky":
			return belay.Ask("it is risky"), nil
		case "forbidden":
			return belay.Deny("it is forbidden"), nil
		default:
			return belay.Pass, nil
		}
	}, nil))
	helpers, err := subagent.New(nil)
	if err != nil {
		return nil, err
	}
	if _, err := helpers.Add(subagent.Subagent{Name: "helper", Description: "helps", Factory: subagent.Agent(helper{}, nil)}); err != nil {
		return nil, err
	}
	act := func(context.Context, *belay.Invocation) (belay.Result, error) { return belay.Result{Text: "done"}, nil }
	var tools []belay.Tool
	for _, name := range []string{"act", "risky", "forbidden"} {
		tools = append(tools, belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "acts"}, act, nil))
	}
	agent, err := belay.New(hookModel{s}, &belay.Options{
		Store: store, Tools: tools, Hooks: subs, Extensions: []belay.Extension{helpers}, Approver: content{},
		Compaction: belay.Compaction{Window: 1000},
	})
	return &stage{agent, set}, err
}

// content is a person who approves everything.
type content struct{}

// Approve approves the call.
func (content) Approve(context.Context, belay.Question) (belay.Decision, error) {
	return belay.Decision{Allow: true, By: "ann"}, nil
}

// helper is the model of a subagent.
type helper struct{}

// Stream implements belay.Model.
func (helper) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("Helped.")}, StopReason: belay.StopEnd}}, nil)
	}
}

// hookModel gives an answer that depends only on the transcript. First it makes a call that
// leads to the phase of the story. When the transcript has a result or a summary, it ends
// the turn.
type hookModel struct{ story hookStory }

// errModel is an error that ends a turn.
var errModel = errors.New("the model refuses")

// Stream implements belay.Model.
func (m hookModel) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		for _, message := range req.Messages {
			if message.Kind != belay.KindResults && !message.IsCompaction {
				continue
			}
			if m.story.Phase == belay.Error.Name() {
				yield(belay.Chunk{}, errModel)
				return
			}
			yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("All done.")}, StopReason: belay.StopEnd}}, nil)
			return
		}
		answer := &belay.Response{StopReason: belay.StopToolUse, Parts: []belay.Part{callOf("act", "a")}}
		switch phase := m.story.Phase; {
		case strings.HasPrefix(phase, "approval."):
			answer.Parts[0] = callOf("risky", "a")
		case phase == belay.ToolDenied.Name():
			answer.Parts[0] = callOf("forbidden", "a")
		case strings.HasPrefix(phase, "subagent."):
			answer.Parts[0].Call = &belay.CallPart{ID: "a", Tool: "invoke_subagent", Input: []byte(`{"name":"helper","prompt":"Help."}`)}
		case strings.HasSuffix(phase, "_compaction"):
			answer.Usage = belay.Usage{In: 900} // the window has 1000 tokens
		}
		yield(belay.Chunk{Response: answer}, nil)
	}
}

// take runs or resumes the turn and closes the session.
func (s *stage) take(ctx context.Context) error {
	session := s.Session(session)
	turn, err := belay.Await(session.Resume(ctx))
	if errors.Is(err, belay.ErrNoTurn) {
		turn, err = session.Turn(ctx, "Act.")
	}
	if err != nil && !errors.Is(err, errModel) && (turn == nil || turn.Reason != belay.EndError || !strings.Contains(turn.Why, errModel.Error())) {
		return fmt.Errorf("the turn: %w", err)
	}
	if err := session.Close(ctx); err != nil {
		return fmt.Errorf("the session: %w", err)
	}
	return nil
}

// playHooks is the main function of the process that will be killed. It runs the turn.
// Its hooks in Go never return.
func playHooks(ctx context.Context, open Open, dir, story string) error {
	var s hookStory
	if err := json.Unmarshal([]byte(story), &s); err != nil {
		return fmt.Errorf("story: %w", err)
	}
	opened, err := open(ctx, dir)
	if err != nil {
		return err
	}
	stage, err := s.cast(dir, opened, func(_ context.Context, id string) error {
		pipe, err := os.OpenFile(filepath.Join(dir, insideFile), os.O_WRONLY, 0) //nolint:gosec // the directory is the test's own
		if err == nil {
			_, err = pipe.WriteString(id + "\n")
		}
		if err != nil {
			return fmt.Errorf("hook %s: %w", id, err)
		}
		select {} // wait until the process is killed
	})
	if err != nil {
		return err
	}
	go func() { _ = stage.Hooks().Work(ctx) }() // runs until the process is killed
	if err := stage.take(ctx); err != nil {
		return err
	}
	<-ctx.Done() // background hooks are still running
	return context.Cause(ctx)
}
