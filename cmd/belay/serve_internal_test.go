package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay/provider/providertest"
)

// keyOfServers is the key that the test servers accept.
const keyOfServers = "sk-of-a-test-0123456789abcdef"

// serve starts a server that answers with these texts, one after the other, until the test
// ends. It stores the server's address in a variable. Usage: serve NAME KIND [TEXT...].
func serve(t *testing.T) func(*testscript.TestScript, bool, []string) {
	t.Helper()
	start := map[string]func() providertest.Server{
		"anthropic": func() providertest.Server {
			return providertest.NewAnthropic(t, &providertest.AnthropicOptions{Key: keyOfServers})
		},
		"openai": func() providertest.Server {
			return providertest.NewResponses(t, &providertest.ResponsesOptions{Key: keyOfServers})
		},
		"openai-chat": func() providertest.Server {
			return providertest.NewChat(t, &providertest.ChatOptions{Key: keyOfServers})
		},
		"gemini": func() providertest.Server {
			return providertest.NewGemini(t, &providertest.GeminiOptions{Key: keyOfServers})
		},
	}
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 2 || start[args[1]] == nil {
			ts.Fatalf("usage: serve NAME anthropic|openai|openai-chat|gemini [TEXT...]")
		}
		server := start[args[1]]()
		for _, text := range args[2:] {
			server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text(text)}})
		}
		ts.Setenv(args[0], server.URL())
	}
}
