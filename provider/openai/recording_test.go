package openai_test

import (
	"cmp"
	"os"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// TestRecordings replays recordings of OpenAI in both protocols. To record them again with
// your key, run make record PROVIDER=openai. Set OPENAI_MODEL to choose the model.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for _, api := range []openai.API{openai.Responses, openai.Chat} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			service := providertest.Live{URL: "https://api.openai.com/v1", KeyVariable: "OPENAI_API_KEY"}
			providertest.TestRecordings(t, "testdata/recordings/"+string(api), service, func(_ testing.TB, address, key string) belay.Model {
				return openai.New(cmp.Or(os.Getenv("OPENAI_MODEL"), "gpt-5-mini"), &openai.Options{URL: address, Key: key, API: api, Provider: "openai"})
			})
		})
	}
}
