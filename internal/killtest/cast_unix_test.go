//go:build unix

package killtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
)

// These are the tools. Only look is idempotent.
const (
	toolSend = "send"
	toolLook = "look"
	toolSlow = "slow" // slower than the time after which finished results of other calls must be stored
)

// taskOf returns the message of a turn. The message alone determines what happens in the
// turn.
func taskOf(session string, number int) string { return fmt.Sprintf("%s-t%d", session, number) }

// callOf returns the id of a call: the task, the step, the index in the step and the tool.
func callOf(task string, step, place int, tool string) string {
	return fmt.Sprintf("%s-%d-%d-%s", task, step, place, tool)
}

// origin returns the task and the step in the id of a call.
func origin(call string) (task string, step int) {
	words := strings.Split(call, "-")
	if len(words) != 5 {
		return "", 0
	}
	step, _ = strconv.Atoi(words[2])
	return words[0] + "-" + words[1], step
}

// chance returns a random source that is seeded with a name.
func chance(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// plan returns the tools that a task calls in each step. After the last step the model
// ends the turn. Most steps have a slow call together with fast calls.
func plan(task string) [][]string {
	r := chance(task)
	steps := make([][]string, 1+r.IntN(2))
	for i := range steps {
		for range 1 + r.IntN(2) {
			steps[i] = append(steps[i], []string{toolSend, toolLook}[r.IntN(2)])
		}
		if r.IntN(3) > 0 {
			steps[i] = append(steps[i], toolSlow)
		}
	}
	return steps
}

// model gives an answer that depends only on the transcript, so that every process gets the
// same answer for a step.
type model struct{ *part }

// usage is the usage of each response.
var usage = belay.Usage{In: 10, Out: 5}

func (model) Info() belay.ModelInfo { return belay.ModelInfo{Name: "kill"} }

// Stream implements belay.Model.
func (m model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		task, step := "", 0
		for _, said := range req.Messages {
			switch {
			case said.Kind == belay.KindUser:
				task, step = said.Text(), 1
			case said.Role == belay.RoleAssistant:
				step++
			}
		}
		m.note(entry{Kind: logAsked, Task: task, Step: step})
		if err := pause(ctx, 30, fmt.Sprint(task, step)); err != nil {
			yield(belay.Chunk{}, err)
			return
		}
		answer := belay.Response{Parts: []belay.Part{belay.Text(fmt.Sprintf("done %s-%d", task, step))}, StopReason: belay.StopEnd, Usage: usage}
		if steps := plan(task); step <= len(steps) {
			answer.Parts, answer.StopReason = nil, belay.StopToolUse
			for i, tool := range steps[step-1] {
				answer.Parts = append(answer.Parts, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: callOf(task, step, i, tool), Tool: tool, Input: []byte(`{}`)}})
			}
		}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

// pause waits for less than most milliseconds. The time depends only on the name.
func pause(ctx context.Context, most int, name string) error {
	timer := time.NewTimer(time.Duration(chance(name).IntN(most)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resultOf returns the result of a call.
func resultOf(call string) string { return "result of " + call }

// tool returns a tool that records its beginning and its end in the log.
func (p *part) tool(name string, least time.Duration) belay.Tool {
	traits := &belay.ToolTraits{Idempotent: name == toolLook}
	return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "does something in the world"}, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
		p.note(entry{Kind: logToolBegin, Session: call.Session, Call: call.ID})
		time.Sleep(least)
		if err := pause(ctx, 50, call.ID); err != nil {
			return belay.Result{}, err
		}
		p.note(entry{Kind: logToolEnd, Session: call.Session, Call: call.ID})
		return belay.Result{Text: resultOf(call.ID)}, nil
	}, traits)
}

// agent makes the agent and installs the hooks of the hooks file.
func (p *part) agent(store belay.Store) (*belay.Agent, *declare.Set, error) {
	agent, err := belay.New(model{p}, &belay.Options{
		Store: store, Tools: []belay.Tool{p.tool(toolSend, 0), p.tool(toolLook, 0), p.tool(toolSlow, 500*time.Millisecond)},
	})
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(p.Dir, "hooks.json")
	declared, err := declare.Load(p.Dir, file)
	if err != nil {
		return nil, nil, err
	}
	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Project: p.Dir, Allowlist: []string{p.Webhooks + "/"}})
	if err == nil {
		_, err = agent.Hooks().Install(set.Subscriptions()...)
	}
	return agent, set, err
}

// declaredHook is a hook of the hooks file.
type declaredHook struct {
	id, phase string
	kind      hook.HandlerKind
	execution hook.Execution
	takes     time.Duration
}

// The checks use these hooks. The turn waits for all of them.
const (
	gate     = "command-gate"     // a slow gate for calls: by then the response has cost money
	stop     = "webhook-stop"     // a slow gate for the last response
	observer = "webhook-deadline" // runs after a response and before its calls
	post     = "webhook-post"     // runs after a tool and before its result is used
)

// hooks has hooks of all kinds and executions.
var hooks = []declaredHook{
	{"command-prompt", belay.UserPromptSubmit.Name(), hook.HandlerCommand, hook.Blocking, 20 * time.Millisecond},
	{"worker-ask", belay.ModelPre.Name(), hook.HandlerWorker, hook.Blocking, 20 * time.Millisecond},
	{gate, belay.ToolPre.Name(), hook.HandlerCommand, hook.Blocking, 80 * time.Millisecond},
	{"command-fire", belay.ModelPost.Name(), hook.HandlerCommand, hook.FireAndRecord, 100 * time.Millisecond},
	{observer, belay.ModelPost.Name(), hook.HandlerWebhook, hook.Deadline, 40 * time.Millisecond},
	{post, belay.ToolPost.Name(), hook.HandlerWebhook, hook.Blocking, 20 * time.Millisecond},
	{"worker-fire", belay.ToolPost.Name(), hook.HandlerWorker, hook.FireAndRecord, 60 * time.Millisecond},
	{stop, belay.TurnStop.Name(), hook.HandlerWebhook, hook.Blocking, 80 * time.Millisecond},
	{"webhook-fire", belay.TurnPostTurn.Name(), hook.HandlerWebhook, hook.FireAndRecord, 60 * time.Millisecond},
	{"command-job", belay.TurnPostTurn.Name(), hook.HandlerCommand, hook.Background, 60 * time.Millisecond},
}

// script is a command hook. It writes its beginning and its end to the log, with its
// input.
const script = `#!/bin/sh
read -r envelope
printf '{"kind":"hook_begin","hook":"%s","envelope":%s}\n' "$1" "$envelope" >> "$2" && sync "$2"
sleep "$3"
printf '{"kind":"hook_end","hook":"%s","envelope":%s}\n' "$1" "$envelope" >> "$2" && sync "$2"
`

// declare writes the hooks file.
func (p *part) declare() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	answers, err := json.Marshal(part{Role: roleAnswer, Dir: p.Dir})
	if err != nil {
		return err
	}
	type object = map[string]any
	var list []object
	for _, h := range hooks {
		// The timeout is long, because on a busy machine every hook may be late.
		o := object{"id": h.id, "phase": h.phase, "execution": h.execution.String(), "timeout": "30s"}
		switch h.kind {
		case hook.HandlerWorker:
			o["worker"], o["env"] = []string{self, "-test.run=^$"}, []string{childPart + "=" + string(answers)}
		case hook.HandlerWebhook:
			o["webhook"] = object{"url": p.Webhooks + "/" + h.id}
		default:
			o["command"] = []string{"./hook.sh", h.id, p.log(), strconv.FormatFloat(h.takes.Seconds(), 'f', 3, 64)}
		}
		if h.execution == hook.Background {
			o["idempotent"], o["retry"] = true, object{"attempts": 100, "delay": "10ms"}
		}
		list = append(list, o)
	}
	text, err := json.Marshal(object{"hooks": list})
	if err == nil {
		err = os.WriteFile(filepath.Join(p.Dir, "hook.sh"), []byte(script), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(p.Dir, "hooks.json"), text, 0o600)
	}
	return err
}

// answer runs a worker hook or a webhook: it writes the beginning and the end to the log.
func (p *part) answer(h declaredHook, e *worker.Envelope) error {
	if err := note(p.log(), &entry{Kind: logHookBegin, Hook: h.id, Envelope: e}); err != nil {
		return err
	}
	time.Sleep(h.takes)
	return note(p.log(), &entry{Kind: logHookEnd, Hook: h.id, Envelope: e})
}

// answerHooks runs the worker process of the worker hooks.
func (p *part) answerHooks() error {
	at := func(phase, session, turn string, step int, call string) error {
		for _, h := range hooks {
			if h.kind == hook.HandlerWorker && h.phase == phase {
				input, err := json.Marshal(map[string]string{"id": call})
				if err != nil {
					return err
				}
				return p.answer(h, &worker.Envelope{Phase: phase, Session: session, Turn: turn, Step: step, Input: input})
			}
		}
		return fmt.Errorf("no worker answers at %s", phase)
	}
	return worker.Serve(
		context.Background(), os.Stdin, os.Stdout,
		worker.On(belay.ModelPre, func(_ context.Context, in belay.ModelRequest) (out belay.Aside, err error) {
			return out, at(belay.ModelPre.Name(), in.Session(), in.Turn(), in.Step(), "")
		}),
		worker.On(belay.ToolPost, func(_ context.Context, in belay.ToolResult) (out belay.ToolReaction, err error) {
			return out, at(belay.ToolPost.Name(), in.Session(), in.Turn(), in.Step(), in.ID())
		}),
	)
}
