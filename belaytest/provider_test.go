package belaytest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
	"github.com/belay-run/belay/provider/scripted"
)

// providers has the real client of each provider, and a test server that it can talk to.
var providers = map[string]struct {
	start func(t testing.TB) providertest.Server
	open  func(server providertest.Server) belay.Model
}{
	"anthropic": {providertest.StartAnthropic, func(s providertest.Server) belay.Model {
		return anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: s.URL(), Key: s.Key()})
	}},
	"openai": {providertest.StartResponses, func(s providertest.Server) belay.Model {
		return openai.New("gpt-5.2", &openai.Options{URL: s.URL(), Key: s.Key(), API: openai.Responses, Provider: "openai"})
	}},
	"chat": {providertest.StartChat, func(s providertest.Server) belay.Model {
		return openai.New("gpt-5.2", &openai.Options{URL: s.URL(), Key: s.Key(), API: openai.Chat})
	}},
	"gemini": {providertest.StartGemini, func(s providertest.Server) belay.Model {
		return gemini.New("gemini-2.5-pro", &gemini.Options{URL: s.URL(), Key: s.Key()})
	}},
}

// An agent with a real client has idle connections at the end of its test. They do not
// count as a leak.
func TestRealClientsLeakNothing(t *testing.T) {
	t.Parallel()
	for name, provider := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := provider.start(t)
			server.Script(
				providertest.Reply{Parts: []providertest.Part{providertest.Text("Hello.")}},
				providertest.Reply{Refusal: &providertest.Refusal{Kind: belay.ModelRateLimited}},
				providertest.Reply{Parts: []providertest.Part{providertest.Text("Bye.")}},
			)
			got := failures(t, func(t testing.TB) {
				agent := belaytest.New(t, provider.open(server), nil)
				agent.Say("hello").Said("Hello.")
				agent.Say("bye").Said("Bye.")
			})
			wantFailure(t, got)
		})
	}
}

// A tool that reads its HTTP response to the end leaves an idle connection, which is no
// leak. A tool that does not leaks the connection.
func TestConnectionsOfTools(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		read, http2 bool
		says        []string
	}{
		"idle":             {true, false, nil},
		"idle with HTTP/2": {true, true, nil},
		"leaked":           {false, false, []string{"goroutines of the agent's turns are left", "readLoop"}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "%0100000d", 1) // more than the client reads ahead
			}))
			if server.EnableHTTP2 = test.http2; test.http2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			client := server.Client()
			var open io.Closer
			fetch := belaytest.NewTool("fetch")
			fetch.Answer = func(ctx context.Context, _ *belay.Invocation, _ int) (belay.Result, error) {
				request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, server.URL, http.NoBody)
				if err != nil {
					return belay.Result{}, err
				}
				response, err := client.Do(request) //nolint:bodyclose // the test closes it when the agent has ended
				if err != nil {
					return belay.Result{}, err
				}
				open = response.Body
				if test.read {
					_, err = io.Copy(io.Discard, response.Body)
				}
				return belay.Result{Text: response.Status}, err
			}
			got := failures(t, func(t testing.TB) {
				agent := belaytest.New(t, belaytest.Script(belaytest.Calls("fetch", nil), belaytest.Says("done")), &belay.Options{Tools: []belay.Tool{fetch}})
				agent.Say("hello").Result("fetch", "200 OK")
			})
			wantFailure(t, got, test.says...)
			if err := open.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

type fact struct {
	City string `json:"city" enum:"Rome,Oslo"`
}

// The kit wraps the model but keeps its abilities: structured output in the provider's
// own format, and Fallback.
func TestModelsKeepTheirAbilities(t *testing.T) {
	t.Parallel()
	server := providers["openai"].start(t)
	server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text(`{"city": "Rome"}`)}})
	down := belaytest.Script(scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelAuth}})
	agent := belaytest.New(t, belay.Fallback(down, providers["openai"].open(server)), nil)
	value, turn := belaytest.Answer[fact](agent, "Where?")
	if value.City != "Rome" {
		t.Errorf("the value is %+v", value)
	}
	turn.Answered(`{"city": "Rome"}`)
	turn.Called() // no call of final_answer: the model supports structured output itself
	turn.Emitted(belay.EventTurnStart, belay.EventError, belay.EventModelResponse, belay.EventTurnEnd)
}
