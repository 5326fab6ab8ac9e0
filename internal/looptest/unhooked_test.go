package looptest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// Neither the runtime nor hooks without an opinion change the requests to the model: the
// requests are equal to the requests of bareLoop.
//
// SPEC H-13
func TestRequestsWithoutHooks(t *testing.T) {
	t.Parallel()
	script := func() *scripted.Model {
		return scripted.New([]scripted.Step{
			{Text: "Let me see.", Calls: []scripted.Call{{ID: "c1", Tool: "read", Input: `{"path": "a"}`}, {ID: "c2", Tool: "write"}}},
			{Thinking: "hm", Calls: []scripted.Call{{ID: "c3", Tool: "broken"}}},
			says("done"),
			says("and done"),
		}, nil)
	}
	tools := func() []belay.Tool {
		return []belay.Tool{echoTool("read"), echoTool("write"), anyTool("broken", func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Failed(belay.ClassFailed, "it is broken"), nil
		}, nil)}
	}
	texts := []string{"do it", "and then?"}
	byAgent := func(opts belay.Options) []wireRequest {
		model := script()
		opts.Instructions, opts.Tools, opts.MaxTokens = "You are careful.", tools(), 1000
		s := agentOf(t, model, &opts).Session("s")
		for _, text := range texts {
			takeTurn(t, s.Run(t.Context(), text), belay.EndTurn)
		}
		return wireOf(t, model.Requests())
	}
	bare := script()
	bareLoop(t, bare, "You are careful.", 1000, tools(), texts)
	want := wireOf(t, bare.Requests())
	if len(want) != 4 {
		t.Fatalf("the bare loop made %d requests", len(want))
	}
	if diff := cmp.Diff(want, byAgent(belay.Options{})); diff != "" {
		t.Errorf("without hooks the requests differ from those of a bare loop:\n%s", diff)
	}
	if diff := cmp.Diff(want, byAgent(belay.Options{Hooks: new(phaseLog).everywhere()})); diff != "" {
		t.Errorf("hooks without an opinion change the requests:\n%s", diff)
	}
}

// wireRequest is a request as JSON, with the parts of its messages that a provider can
// send.
type wireRequest struct {
	System, Tools string
	MaxTokens     int
	Messages      []string
}

func wireOf(t *testing.T, requests []belay.Request) []wireRequest {
	t.Helper()
	encode := func(value any) string {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var all []wireRequest
	for _, req := range requests {
		wire := wireRequest{System: req.System, Tools: encode(req.Tools), MaxTokens: req.MaxTokens}
		for _, m := range req.Messages {
			wire.Messages = append(wire.Messages, encode(struct {
				Seq   int64
				Role  belay.Role
				Kind  belay.MessageKind
				Parts []belay.Part
			}{m.Seq, m.Role, m.Kind, m.Parts}))
		}
		all = append(all, wire)
	}
	return all
}

// bareLoop is an agent loop without a runtime: it sends a request, calls tools, and
// repeats.
func bareLoop(t *testing.T, model belay.Model, system string, maxTokens int, tools []belay.Tool, texts []string) {
	t.Helper()
	req := &belay.Request{System: system, MaxTokens: maxTokens}
	byName := make(map[string]belay.Tool)
	for _, tool := range tools {
		req.Tools = append(req.Tools, tool.Declaration())
		byName[tool.Declaration().Name] = tool
	}
	say := func(role belay.Role, kind belay.MessageKind, parts []belay.Part) *belay.Message {
		m := &belay.Message{Seq: int64(len(req.Messages) + 1), Role: role, Kind: kind, Parts: parts}
		req.Messages = append(req.Messages, m)
		return m
	}
	for _, text := range texts {
		say(belay.RoleUser, belay.KindUser, []belay.Part{belay.Text(text)})
		for {
			var response *belay.Response
			for chunk, err := range model.Stream(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
				response = chunk.Response
			}
			calls := say(belay.RoleAssistant, belay.KindAssistant, response.Parts).Calls()
			if len(calls) == 0 {
				break
			}
			var results []belay.Part
			for _, c := range calls {
				result, err := byName[c.Tool].Call(t.Context(), &belay.Invocation{ID: c.ID, Tool: c.Tool, Input: c.Input})
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: c.ID, Tool: c.Tool, Result: result}})
			}
			say(belay.RoleUser, belay.KindResults, results)
		}
	}
}
