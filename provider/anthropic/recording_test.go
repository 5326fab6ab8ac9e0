package anthropic_test

import (
	"cmp"
	"os"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

// TestRecordings replays recordings of the Messages API. To record them again with your key,
// run make record PROVIDER=anthropic. Set ANTHROPIC_MODEL to choose the model.
func TestRecordings(t *testing.T) {
	t.Parallel()
	service := providertest.Live{URL: "https://api.anthropic.com", KeyVariable: "ANTHROPIC_API_KEY"}
	providertest.TestRecordings(t, "testdata/recordings", service, func(_ testing.TB, address, key string) belay.Model {
		return anthropic.New(cmp.Or(os.Getenv("ANTHROPIC_MODEL"), "claude-sonnet-4-5"), &anthropic.Options{URL: address, Key: key, Provider: "anthropic", Thinking: 1024})
	})
}
