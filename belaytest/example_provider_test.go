package belaytest_test

import (
	"testing"

	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

// docs:begin provider

func TestWithTheRealClient(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil) // on loopback; it refuses what the service would refuse
	server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("Hello.")}})
	model := anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: server.URL(), Key: server.Key()})

	belaytest.New(t, model, nil).Say("Hi.").Said("Hello.")
}

// docs:end provider
