package belay_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin http

// newServer serves an agent. Its Options have OnAsk: belay.AskPark, so that no request waits for a person.
func newServer(agent *belay.Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions/{id}/turns", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Text string `json:"text"`
		}
		if read(w, r, &in) {
			stream(w, agent.Session(r.PathValue("id")).Run(r.Context(), in.Text))
		}
	})
	mux.HandleFunc("POST /sessions/{id}/decisions", func(w http.ResponseWriter, r *http.Request) {
		var decision belay.Decision
		if !read(w, r, &decision) {
			return
		}
		decision.By = "ann" // take it from your login, never from the request
		if _, err := agent.Decide(r.Context(), decision); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		stream(w, agent.Session(r.PathValue("id")).Resume(r.Context()))
	})
	mux.HandleFunc("GET /sessions/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		after := cmp.Or(r.Header.Get("Last-Event-ID"), "0") // a client that comes back says what it got last
		stream(w, agent.Watch(r.Context(), &belay.WatchOptions{Session: r.PathValue("id"), After: after}))
	})
	return mux
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(into); err != nil {
		http.Error(w, "the body is not the JSON that this address expects", http.StatusBadRequest)
		return false
	}
	return true
}

// stream sends the events of a turn as server-sent events, each as it happens.
func stream(w http.ResponseWriter, events iter.Seq2[belay.Event, error]) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	for event, err := range events {
		if err != nil {
			_, _ = fmt.Fprintf(w, "event: failed\ndata: %q\n\n", err.Error())
			return
		}
		data, err := json.Marshal(event)
		if err != nil {
			return
		}
		if event.Position != "" {
			_, _ = fmt.Fprintf(w, "id: %s\n", event.Position)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event.Kind, data)
		if http.NewResponseController(w).Flush() != nil {
			return // the client has left: leaving the loop cancels the turn
		}
	}
}

// docs:end http

// An agent behind net/http: a turn that parks, the decision, and the rest of the turn.
func Example_http() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "deploy", Input: `{"env": "staging"}`}}},
		{Text: "It is out."},
	}, nil)
	agent := must(belay.New(model, &belay.Options{
		Tools: []belay.Tool{deployTool()}, Hooks: []hook.Subscription{AskFirst}, OnAsk: belay.AskPark,
	}))
	server := httptest.NewServer(newServer(agent))
	defer server.Close()

	var asked belay.Approval
	post := func(path string, body any) {
		data := must(json.Marshal(body))
		request := must(http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+path, strings.NewReader(string(data))))
		response, err := http.DefaultClient.Do(request)
		check(err)
		defer func() { _ = response.Body.Close() }()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var event belay.Event
			check(json.Unmarshal([]byte(data), &event))
			switch event.Kind {
			case belay.EventApprovalRequested:
				asked = *event.Approval
				fmt.Println(event.Kind, asked.Tool, "-", asked.Reason)
			case belay.EventTurnEnd:
				fmt.Printf("%s %s %q\n", event.Kind, event.End.Reason, event.End.Text)
			default:
			}
		}
	}
	post("/sessions/demo/turns", map[string]string{"text": "Deploy it."})
	post("/sessions/demo/decisions", belay.Decision{Approval: asked.ID, Hash: asked.Hash, Allow: true})

	// Output:
	// approval_requested deploy - deployments need approval
	// turn_end parked ""
	// deploying to staging
	// turn_end end_turn "It is out."
}
