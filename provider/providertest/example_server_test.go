package providertest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

// A test server replaces the real service. It sends scripted replies, and refuses what the
// service would refuse.
func ExampleNewAnthropic() {
	test := func(t testing.TB) {
		server := providertest.NewAnthropic(t, nil)
		server.Script(
			providertest.Reply{Refusal: &providertest.Refusal{Kind: belay.ModelRateLimited, RetryAfter: "2"}},
			providertest.Reply{Parts: []providertest.Part{providertest.Text("Good ", "morning!")}},
		)
		model := anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: server.URL(), Key: server.Key()})
		request := &belay.Request{Messages: []*belay.Message{{Role: belay.RoleUser, Parts: []belay.Part{belay.Text("hello")}}}}
		for range 2 {
			for chunk, err := range model.Stream(context.Background(), request) {
				switch {
				case err != nil:
					fmt.Println(err)
				case chunk.Response != nil:
					fmt.Println("stopped:", chunk.Response.StopReason)
				case chunk.Text != "":
					fmt.Printf("%q\n", chunk.Text)
				}
			}
		}
		fmt.Println("requests:", len(server.Requests()))
	}

	runExample(test) // in your own test, pass its t
	// Output:
	// model anthropic/claude-sonnet-4-5: rate_limited (HTTP 429): rate_limit_error: This request would exceed a rate limit. (request req_of_a_test)
	// "Good "
	// "morning!"
	// stopped: end_turn
	// requests: 2
}

// runExample calls test with a stage and then runs its cleanup functions.
func runExample(test func(t testing.TB)) {
	t := &stage{}
	defer t.end()
	test(t)
}

// stage implements the methods of testing.TB that a server needs.
type stage struct {
	testing.TB

	ends []func()
}

func (s *stage) Helper()          {}
func (s *stage) Cleanup(f func()) { s.ends = append(s.ends, f) }

func (s *stage) end() {
	for _, f := range s.ends {
		f()
	}
}
