package main

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// model calls the tool note once in each turn, and then says a few sentences. It takes a time for each answer.
type model struct{ takes time.Duration }

// sentences is an answer.
var sentences = strings.Repeat("The note is written, and the tests pass. ", 8)

// Stream implements belay.Model.
func (m model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		if m.takes > 0 {
			select {
			case <-time.After(m.takes):
			case <-ctx.Done():
				yield(belay.Chunk{}, context.Cause(ctx))
				return
			}
		}
		answer := belay.Response{Parts: []belay.Part{belay.Text(sentences)}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 1000, Out: 80}}
		if req.Messages[len(req.Messages)-1].Kind == belay.KindUser {
			answer.StopReason = belay.StopToolUse
			answer.Parts = []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "c", Tool: "note", Input: json.RawMessage(`{"text": "the tests pass"}`)}}}
		}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

// newAgent returns an agent with one tool.
func newAgent(store belay.Store, takes time.Duration) (*belay.Agent, error) {
	type note struct {
		Text string `json:"text"`
	}
	tool := belay.NewTool("note", "Writes a note.", func(context.Context, note) (string, error) { return "written", nil }, nil)
	return belay.New(model{takes}, &belay.Options{Store: store, Tools: []belay.Tool{tool}})
}
