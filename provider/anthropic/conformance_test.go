package anthropic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// SPEC L-04, L-07
func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Test(t, providertest.StartAnthropic, func(t testing.TB, server providertest.Server) belay.Model {
		t.Helper()
		return open(server, nil)
	})
}

func TestConformanceWithoutAStream(t *testing.T) {
	t.Parallel()
	providertest.TestWhole(t, func(t testing.TB) providertest.Server {
		t.Helper()
		return providertest.NewAnthropic(t, &providertest.AnthropicOptions{Whole: true})
	}, func(t testing.TB, server providertest.Server) belay.Model {
		t.Helper()
		return open(server, nil)
	})
}

func TestTakesOver(t *testing.T) {
	t.Parallel()
	providertest.TestSwap(t, providertest.StartAnthropic, func(t testing.TB, server providertest.Server) belay.Model {
		t.Helper()
		return open(server, nil)
	})
}

// open returns a model that uses the given server.
func open(server providertest.Server, o *anthropic.Options) *anthropic.Model {
	if o == nil {
		o = &anthropic.Options{}
	}
	o.URL, o.Key = server.URL(), server.Key()
	return anthropic.New("claude-sonnet-4-5", o)
}
