package providertest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// overHTTP starts a server and returns it with a model, for each provider.
var overHTTP = map[string]func(t testing.TB) (providertest.Server, belay.Model){
	"anthropic": func(t testing.TB) (providertest.Server, belay.Model) {
		t.Helper()
		s := providertest.NewAnthropic(t, nil)
		return s, anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: s.URL(), Key: s.Key()})
	},
	"openai responses": func(t testing.TB) (providertest.Server, belay.Model) {
		t.Helper()
		s := providertest.NewResponses(t, nil)
		return s, openai.New("gpt-5.2", &openai.Options{URL: s.URL(), Key: s.Key(), API: openai.Responses})
	},
	"openai chat": func(t testing.TB) (providertest.Server, belay.Model) {
		t.Helper()
		s := providertest.NewChat(t, nil)
		return s, openai.New("gpt-5.2", &openai.Options{URL: s.URL(), Key: s.Key(), API: openai.Chat})
	},
	"gemini": func(t testing.TB) (providertest.Server, belay.Model) {
		t.Helper()
		s := providertest.NewGemini(t, nil)
		return s, gemini.New("gemini-2.5-flash", &gemini.Options{URL: s.URL(), Key: s.Key()})
	},
}

// If a server sends nothing more but keeps the connection open, the attempt fails. The turn
// then retries.
//
// SPEC L-04
func TestAServerThatFallsSilent(t *testing.T) {
	t.Parallel()
	for name, open := range overHTTP {
		for after, where := range []string{"before it answers", "in the middle of its answer"} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				server, model := open(t)
				server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("half ", "an answer")}, Hold: &providertest.Hold{After: after}})
				for range 4 { // on a busy machine a retry may take too long too
					server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("whole")}})
				}
				turn, retried := taken(t, model, 500*time.Millisecond)
				if turn.Text != "whole" || len(retried) == 0 || !strings.Contains(retried[0], "network: the model sent nothing for 500ms") {
					t.Errorf("the turn ended with %q after %q", turn.Text, retried)
				}
				select { // the model must release the connection
				case <-server.Requests()[0].Done:
				case <-time.After(30 * time.Second):
					t.Error("the request is still under way")
				}
			})
		}
	}
}

// A turn waits for a server that sends pings while the model thinks for a long time.
//
// SPEC L-04
func TestAServerThatSendsSignsOfLife(t *testing.T) {
	t.Parallel()
	const idle = 3 * time.Second
	for name, open := range overHTTP {
		for after, where := range []string{"before it answers", "in the middle of its answer"} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				server, model := open(t)
				on := make(chan struct{})
				time.AfterFunc(idle+idle/2, func() { close(on) })
				server.Script(providertest.Reply{
					Parts: []providertest.Part{providertest.Text("a whole ", "answer")}, Hold: &providertest.Hold{After: after, Until: on, Ping: 50 * time.Millisecond},
				})
				if turn, retried := taken(t, model, idle); turn.Text != "a whole answer" || len(retried) > 0 {
					t.Errorf("the turn ended with %q after %q", turn.Text, retried)
				}
			})
		}
	}
}

// taken runs a turn. It returns the turn and the errors after which Belay retried.
func taken(t *testing.T, model belay.Model, idle time.Duration) (*belay.Turn, []string) {
	t.Helper()
	agent, err := belay.New(model, &belay.Options{Limits: belay.Limits{Idle: idle}, Retry: hook.Retry{Attempts: 5, Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	var end *belay.Turn
	var retried []string
	for e, err := range agent.Session("s").Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == belay.EventError {
			retried = append(retried, e.Text)
		}
		if e.End != nil {
			end = e.End
		}
	}
	return end, retried
}
