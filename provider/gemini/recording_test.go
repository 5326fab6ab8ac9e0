package gemini_test

import (
	"cmp"
	"os"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/providertest"
)

// TestRecordings replays recordings of the Gemini API. To record them again with your key,
// run make record PROVIDER=gemini. Set GEMINI_MODEL to choose the model.
func TestRecordings(t *testing.T) {
	t.Parallel()
	service := providertest.Live{URL: "https://generativelanguage.googleapis.com", KeyVariable: "GEMINI_API_KEY"}
	providertest.TestRecordings(t, "testdata/recordings", service, func(_ testing.TB, address, key string) belay.Model {
		return gemini.New(cmp.Or(os.Getenv("GEMINI_MODEL"), newer), &gemini.Options{URL: address, Key: key, Thinking: gemini.Adaptive})
	})
}
