package openai_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// SPEC L-04, L-07
func TestResponsesConform(t *testing.T) {
	t.Parallel()
	providertest.Test(t, providertest.StartResponses, openResponses)
}

func TestResponsesConformWithoutAStream(t *testing.T) {
	t.Parallel()
	providertest.TestWhole(t, func(t testing.TB) providertest.Server {
		t.Helper()
		return providertest.NewResponses(t, &providertest.ResponsesOptions{Whole: true})
	}, openResponses)
}

func TestResponsesTakeOver(t *testing.T) {
	t.Parallel()
	providertest.TestSwap(t, providertest.StartResponses, openResponses)
}

// SPEC L-04, L-07
func TestChatConforms(t *testing.T) {
	t.Parallel()
	for _, thinking := range []string{"reasoning_content", "reasoning_details"} {
		t.Run(thinking, func(t *testing.T) {
			t.Parallel()
			providertest.Test(t, startChat(&providertest.ChatOptions{Thinking: thinking}), openChat)
		})
	}
}

func TestChatConformsWithoutAStream(t *testing.T) {
	t.Parallel()
	providertest.TestWhole(t, startChat(&providertest.ChatOptions{Whole: true, Thinking: "reasoning"}), openChat)
}

func TestChatTakesOver(t *testing.T) {
	t.Parallel()
	providertest.TestSwap(t, providertest.StartChat, openChat)
}

// startChat returns a function that starts a server with the options.
func startChat(o *providertest.ChatOptions) func(t testing.TB) providertest.Server {
	return func(t testing.TB) providertest.Server {
		t.Helper()
		return providertest.NewChat(t, o)
	}
}

func openChat(t testing.TB, server providertest.Server) belay.Model {
	t.Helper()
	return open(server, &openai.Options{API: openai.Chat})
}

func openResponses(t testing.TB, server providertest.Server) belay.Model {
	t.Helper()
	return open(server, &openai.Options{API: openai.Responses})
}

// open returns a model that uses the given server.
func open(server providertest.Server, o *openai.Options) *openai.Model {
	o.URL, o.Key = server.URL(), server.Key()
	return openai.New("gpt-5.2", o)
}
