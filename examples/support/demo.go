package main

import (
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/google/uuid"
)

// demoOrder is the order that the scripted model knows.
var demoOrder = uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8")

var demoOrders = map[uuid.UUID]Order{
	demoOrder: {ID: demoOrder, Item: "a kettle", Price: Amount{Cents: 4990, Currency: "EUR"}, Shipped: time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)},
}

// models returns the model and its fallback. They are real models if there are keys.
// Otherwise they are scripted: the first model fails, and the second model refunds the
// kettle.
func models() (first, second belay.Model) { //nolint:ireturn // they are real or scripted
	if os.Getenv("ANTHROPIC_API_KEY") != "" && os.Getenv("OPENAI_API_KEY") != "" {
		return anthropic.New("claude-sonnet-4-5", nil), openai.New("gpt-5.2", nil)
	}
	down := scripted.New([]scripted.Step{{Fault: &scripted.Fault{Kind: belay.ModelAuth, Message: "the key was revoked"}}}, &scripted.Options{Name: "scripted/first", Repeat: true})
	order := map[string]any{"order": demoOrder}
	return down, scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "find_order", Input: order}}},
		{Calls: []scripted.Call{
			{Tool: "refund", Input: map[string]any{"order": demoOrder, "amount": map[string]any{"cents": 4990}, "reason": "broken", "note": nil}},
			{Tool: "call_back", Input: `{"at": "2026-03-09T10:00:00Z"}`},
		}},
		{Calls: []scripted.Call{{Tool: "final_answer", Input: `{"summary": "You get 49.90 EUR back, and we call you.", "status": "solved", "refunded": 4990}`}}},
	}, &scripted.Options{Name: "scripted/second", FollowTranscript: true}) // so that it can continue a turn that another process began
}
