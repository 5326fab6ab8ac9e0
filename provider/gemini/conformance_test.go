package gemini_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// SPEC L-04, L-07
//
//nolint:tparallel,paralleltest // the rules run in parallel; that is enough
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, model := range []string{newer, older} {
		t.Run(model, func(t *testing.T) {
			talk := func(t testing.TB, server providertest.Server) belay.Model {
				t.Helper()
				return opened(model, server, nil)
			}
			providertest.Test(t, providertest.StartGemini, talk)
			t.Run("swap", func(t *testing.T) { providertest.TestSwap(t, providertest.StartGemini, talk) })
		})
	}
}

func TestConformanceWithoutAStream(t *testing.T) {
	t.Parallel()
	providertest.TestWhole(t, func(t testing.TB) providertest.Server {
		t.Helper()
		return providertest.NewGemini(t, &providertest.GeminiOptions{Whole: true})
	}, func(t testing.TB, server providertest.Server) belay.Model {
		t.Helper()
		return open(server, nil)
	})
}

// The tests use two models, because calls are signed from Gemini 3 on.
const (
	newer = "gemini-3-flash-preview"
	older = "gemini-2.5-flash"
)

// open returns a newer model that uses the given server.
func open(server providertest.Server, o *gemini.Options) *gemini.Model {
	return opened(newer, server, o)
}

// opened returns the model with a name.
func opened(model string, server providertest.Server, o *gemini.Options) *gemini.Model {
	if o == nil {
		o = &gemini.Options{}
	}
	o.URL, o.Key = server.URL(), server.Key()
	return gemini.New(model, o)
}
