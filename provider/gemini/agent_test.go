package gemini_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/providertest"
	"github.com/belay-run/belay/store/memstore"
)

// A session uses models of this provider and of another in turn, with calls and thinking.
// The servers are strict: the turn fails if a server gets something invalid.
func TestASessionGoesFromModelToModel(t *testing.T) {
	t.Parallel()
	name := "7_" + strings.Repeat("a_long_name_", 10) // the service does not accept this name
	look := belay.NewTool(name, "looks", func(_ context.Context, _ struct {
		At any `json:"at" jsonschema:"where to"`
	},
	) (belay.Result, error) {
		return belay.Result{Text: "a door", Media: []belay.Media{{MIME: "image/png", Data: []byte("png")}}}, nil
	}, nil)
	store := memstore.New(nil)
	claude, google := providertest.NewAnthropic(t, nil), providertest.NewGemini(t, nil)
	sentName := gemini.SentNames([]belay.ToolDeclaration{{Name: name}})[0]
	turns := []struct {
		model  belay.Model
		server providertest.Server
		tool   string
	}{
		{anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: claude.URL(), Key: claude.Key()}), claude, name},
		{open(google, nil), google, sentName},
		{open(google, nil), google, sentName},
		{opened(older, google, nil), google, sentName},
		{anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: claude.URL(), Key: claude.Key()}), claude, name},
		{open(google, nil), google, sentName},
	}
	for i, turn := range turns {
		agent, err := belay.New(turn.model, &belay.Options{Store: store, Tools: []belay.Tool{look}})
		if err != nil {
			t.Fatal(err)
		}
		turn.server.Script(
			providertest.Reply{Parts: []providertest.Part{providertest.Thinking("hm", "m"), providertest.Call("one", turn.tool, `{"at": 1.50}`), providertest.Call("two", turn.tool, `{"at": "<left>"}`)}},
			providertest.Reply{Parts: []providertest.Part{providertest.Text("A door", ".")}})
		session := agent.Session("demo")
		done, err := session.Turn(t.Context(), "look")
		if err != nil || done.Reason != belay.EndTurn || done.Text != "A door." {
			t.Fatalf("turn %d ended %+v, %v", i+1, done, err)
		}
		if err := session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		requests := turn.server.Requests()
		var results []string
		for _, m := range requests[len(requests)-1].Messages {
			for _, p := range m.Parts {
				if p.Result != nil {
					results = append(results, p.Result.Tool+" "+p.Result.Text)
				}
			}
		}
		var want []string
		for range 2 * (i + 1) {
			want = append(want, turn.tool+" a door")
		}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("turn %d: the results that the model received (-want +got):\n%s", i+1, diff)
		}
	}
}

// SPEC L-10
func TestATypedAnswer(t *testing.T) {
	t.Parallel()
	type place struct {
		Name string  `json:"name"`
		Far  float64 `json:"far"`
	}
	server := providertest.NewGemini(t, nil)
	server.Script(
		providertest.Reply{Parts: []providertest.Part{providertest.Call("c1", "final_answer", `{"name":"door"}`)}},
		providertest.Reply{Parts: []providertest.Part{providertest.Call("c2", "final_answer", `{"name":"door","far":2.5}`)}})
	agent, err := belay.New(open(server, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, turn, err := belay.Answer[place](t.Context(), agent.Session("demo"), "what is there?")
	if err != nil || got != (place{"door", 2.5}) || turn.Steps != 2 {
		t.Errorf("got %+v, %+v, %v, want the door after two steps", got, turn, err)
	}
}
