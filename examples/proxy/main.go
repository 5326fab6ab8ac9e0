// Command proxy is an agent whose subagent is another service. The subagent posts its task
// to the service, and the response is its answer.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

// docs:begin proxy

// proxy is a subagent that is a service at an address.
type proxy struct{ address string }

// Run posts the text. The context is cancelled with the parent's turn, and when the
// subagent times out.
func (p proxy) Run(ctx context.Context, text string, _ ...belay.Part) iter.Seq2[belay.Event, error] {
	return func(yield func(belay.Event, error) bool) {
		answer, err := p.post(ctx, text)
		if err != nil {
			yield(belay.Event{}, err) // the model gets the error
			return
		}
		yield(belay.Event{Kind: belay.EventTextDelta, Text: answer}, nil)
	}
}

// docs:end proxy

// longest is how many bytes of an answer are read.
const longest = 1 << 20

func (p proxy) post(ctx context.Context, text string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address, strings.NewReader(text))
	if err != nil {
		return "", fmt.Errorf("ask the service: %w", err)
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask the service: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // ignore errors: the body was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, longest))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the service answered %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return strings.TrimSpace(string(body)), nil
}

// translate is the service. Normally it would run on another machine.
func translate(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, longest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	words := map[string]string{"Good morning": "Guten Morgen"}
	translated, ok := words[string(text)]
	if !ok {
		http.Error(w, "no such phrase", http.StatusNotFound)
		return
	}
	_, _ = io.WriteString(w, translated) // ignore errors: the caller may have ended the connection
}

func main() {
	if err := run(context.Background()); err != nil {
		panic(err)
	}
}

func run(ctx context.Context) error {
	service := httptest.NewServer(http.HandlerFunc(translate))
	defer service.Close()
	// docs:begin add
	subagents, err := subagent.New(&subagent.Options{Subagents: []subagent.Subagent{{
		Name: "translator", Description: "Translates a phrase into German. The prompt is the phrase.",
		Factory: func(context.Context, *subagent.Task) (subagent.Runner, error) { return proxy{service.URL}, nil },
	}}})
	// docs:end add
	if err != nil {
		return err
	}
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "invoke_subagent", Input: `{"name": "translator", "prompt": "Good morning"}`}}},
		{Calls: []scripted.Call{{Tool: "invoke_subagent", Input: `{"name": "translator", "prompt": "Good evening"}`}}},
		{Text: "Good morning is Guten Morgen. For good evening the service has no words."},
	}, nil)
	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{subagents}})
	if err != nil {
		return err
	}
	for event, err := range agent.Session("proxy").Run(ctx, "How do I greet somebody in German?") {
		switch {
		case err != nil:
			return err
		case event.Subagent != nil:
			fmt.Println(event.Kind, event.Subagent.Name, cmp.Or(event.Subagent.Prompt, event.Subagent.Status))
		case event.Result != nil:
			fmt.Println(" ", event.Result.Text)
		case event.End != nil && event.Depth == 0:
			fmt.Println(event.End.Text)
		}
	}
	return agent.Close(ctx)
}
