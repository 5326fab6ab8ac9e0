package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay"
)

// instant is a model that answers at once. It first calls the tool echo, and ends the turn
// when it gets the result.
type instant struct{}

func (instant) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		answer := &belay.Response{Parts: []belay.Part{belay.Text("done")}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 100, Out: 10}}
		if last := req.Messages[len(req.Messages)-1]; last.Parts[0].Result == nil {
			answer.Parts = []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "call_4fJ2kQ9xZ1aB7cD3", Tool: "echo", Input: json.RawMessage(`{"text":"hello"}`)}}}
			answer.StopReason = belay.StopToolUse
		}
		yield(belay.Chunk{Response: answer}, nil)
	}
}

type echoInput struct {
	Text string `json:"text" jsonschema:"what to say"`
}

func echo(_ context.Context, in echoInput) (string, error) { return in.Text, nil }

var echoTool = belay.NewTool("echo", "says it again", echo, nil)

// bareTurns returns a function that runs turns in a minimal loop: the floor for Belay's
// turns. The loop has no hooks, limits or records, but it validates the input of the tool.
func bareTurns(model belay.Model) (func(n int), error) {
	var schema jsonschema.Schema
	declaration := echoTool.Declaration()
	if err := json.Unmarshal(declaration.InputSchema, &schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	tools := []belay.ToolDeclaration{declaration}
	return func(n int) {
		var history []*belay.Message
		for i := range n {
			if i%sessionTurns == 0 {
				history = nil
			}
			history = append(history, &belay.Message{Role: belay.RoleUser, Parts: []belay.Part{belay.Text("say hello")}})
			for calls := 1; calls > 0; {
				calls = 0
				results := &belay.Message{Role: belay.RoleUser}
				for chunk, err := range model.Stream(ctx, &belay.Request{Messages: history, Tools: tools}) {
					must(err)
					history = append(history, &belay.Message{Role: belay.RoleAssistant, Parts: chunk.Response.Parts})
				}
				for _, part := range history[len(history)-1].Parts {
					if part.Call == nil {
						continue
					}
					calls++
					var value any
					must(json.Unmarshal(part.Call.Input, &value))
					must(resolved.Validate(value))
					var in echoInput
					must(json.Unmarshal(part.Call.Input, &in))
					text, err := echo(ctx, in)
					must(err)
					results.Parts = append(results.Parts, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{
						Call: part.Call.ID, Tool: part.Call.Tool, Result: belay.Result{Text: text},
					}})
				}
				if calls > 0 {
					history = append(history, results)
				}
			}
		}
	}, nil
}

func must(err error) {
	if err != nil {
		panic("bench: " + err.Error())
	}
}
