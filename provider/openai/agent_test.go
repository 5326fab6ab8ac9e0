package openai_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// In both protocols, a typed answer is the input of a tool call.
//
// SPEC L-10
func TestTypedAnswers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		server.Script(
			providertest.Reply{Parts: []providertest.Part{providertest.Call("c1", "final_answer", `{"city":7}`)}},
			providertest.Reply{Parts: []providertest.Part{providertest.Call("c2", "final_answer", `{"city":"Paris"}`)}},
		)
		agent, err := belay.New(open(server, &openai.Options{API: api}), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = agent.Close(context.Background()) })
		type capital struct {
			City string `json:"city"`
		}
		got, turn, err := belay.Answer[capital](t.Context(), agent.Session("s"), "What is the capital of France?")
		if err != nil || got.City != "Paris" || turn.Usage.In != 20 {
			t.Errorf("got %+v, %+v, %v, want Paris after two requests", got, turn, err)
		}
		requests := server.Requests()
		if err := server.Extends(requests[0], requests[1]); err != nil {
			t.Errorf("the second request does not begin with the first: %v", err)
		}
	})
}

// The agent retries after a temporary refusal, and compacts a conversation that is too long.
//
// SPEC L-04, L-06
func TestATurnSurvivesRefusals(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		agent, err := belay.New(open(server, &openai.Options{API: api}), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = agent.Close(context.Background()) })
		session := agent.Session("s")
		text := func(text string) providertest.Reply {
			return providertest.Reply{Parts: []providertest.Part{providertest.Text(text)}}
		}
		server.Script(
			providertest.Reply{Refusal: &providertest.Refusal{Kind: belay.ModelRateLimited, RetryAfter: "0.001"}},
			providertest.Reply{Parts: []providertest.Part{providertest.Text("Good")}, Break: &providertest.Break{After: 3}},
			text("Good morning."),
			providertest.Reply{Refusal: &providertest.Refusal{Kind: belay.ModelTooLong}},
			text("They said good morning."),
			text("Good evening."),
		)
		for _, want := range []string{"Good morning.", "Good evening."} {
			turn, err := session.Turn(t.Context(), "hello")
			if err != nil || turn.Reason != belay.EndTurn || turn.Text != want {
				t.Fatalf("got %+v, %v, want %q", turn, err, want)
			}
		}
		requests := server.Requests()
		if len(requests) != 6 || !bytes.Equal(requests[0].Body, requests[2].Body) || !bytes.Contains(requests[5].Body, []byte("They said good morning.")) {
			t.Errorf("got %d requests, want 6, of which the third is the first and the last holds the summary", len(requests))
		}
	})
}

// A conversation moves between three providers. Each provider gets the whole conversation in
// its own protocol, with its own thinking and without the thinking of the others.
func TestAConversationMovesBetweenProviders(t *testing.T) {
	t.Parallel()
	responses, chat, messages := providertest.NewResponses(t, nil), providertest.NewChat(t, nil), providertest.NewAnthropic(t, nil)
	stations := []struct {
		name   string
		server providertest.Server
		model  belay.Model
	}{
		{"responses", responses, open(responses, &openai.Options{API: openai.Responses, Provider: "openai"})},
		{"chat", chat, open(chat, &openai.Options{API: openai.Chat, Provider: "local"})},
		{"anthropic", messages, anthropic.New("m", &anthropic.Options{URL: messages.URL(), Key: messages.Key()})},
	}
	req := &belay.Request{System: "system", Tools: []belay.ToolDeclaration{{Name: "look"}}}
	for round := range 3 {
		for i, s := range stations {
			id := strings.Repeat("c", 1+round*len(stations)+i)
			req.Messages = append(req.Messages, user("look"))
			s.server.Script(
				providertest.Reply{Parts: []providertest.Part{providertest.Thinking("a thought of "+s.name, id), providertest.Text("Looking."), providertest.Call(id, "look", `{"at":"left"}`)}},
				providertest.Reply{Parts: []providertest.Part{providertest.Text("A door.")}},
			)
			for range 2 {
				r, err := answer(t, s.model, req)
				if err != nil {
					t.Fatalf("round %d, %s: %v", round, s.name, err)
				}
				m := message(belay.RoleAssistant, r.Parts...)
				req.Messages = append(req.Messages, m)
				for _, call := range m.Calls() {
					req.Messages = append(req.Messages, message(belay.RoleUser, result(call.ID, call.Tool, belay.Result{Text: "a door"})))
				}
			}
		}
	}
	for _, s := range stations {
		requests := s.server.Requests()
		last := requests[len(requests)-1]
		for _, other := range stations {
			n := bytes.Count(last.Body, []byte("a thought of "+other.name))
			want := 0
			if other.name == s.name {
				want = 3
			}
			if n != want {
				t.Errorf("%s got %d thoughts of %s, want %d", s.name, n, other.name, want)
			}
		}
		for i := 1; i < len(requests); i++ {
			if err := s.server.Extends(requests[i-1], requests[i]); err != nil {
				t.Errorf("%s: request %d does not begin with request %d: %v", s.name, i+1, i, err)
			}
		}
	}
}
