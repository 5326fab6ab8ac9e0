package providertest

import (
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// NamedRule is a rule of the suite. Tests run single rules on broken models.
type NamedRule struct {
	Name  string
	Check func(t testing.TB, open func(t testing.TB, server Server) belay.Model)
}

// AnthropicRules returns the rules of Test for Anthropic servers. A rule waits at most
// patience.
func AnthropicRules(patience time.Duration) []NamedRule {
	return named(rules(), patience, StartAnthropic)
}

// SwapRules returns the rules of TestSwap for Responses servers.
func SwapRules(patience time.Duration) []NamedRule {
	return named(swapRules, patience, StartResponses)
}

func named(rules []rule, patience time.Duration, start func(t testing.TB) Server) []NamedRule {
	var named []NamedRule
	for _, r := range rules {
		named = append(named, NamedRule{r.name, func(t testing.TB, open func(t testing.TB, server Server) belay.Model) {
			r.check(newScene(t, patience, start, open))
		}})
	}
	return named
}

// Conversations returns the names of the conversations of TestRecordings.
func Conversations() []string {
	var names []string
	for _, k := range takes {
		names = append(names, k.name)
	}
	return names
}

// Record records one conversation.
func Record(t testing.TB, dir, conversation, service, key string, open func(t testing.TB, address, key string) belay.Model) {
	t.Helper()
	i := slices.IndexFunc(takes, func(k take) bool { return k.name == conversation })
	record(t, dir, takes[i], service, key, open)
}

// Replay replays one recording.
func Replay(t testing.TB, file string, open func(t testing.TB, address, key string) belay.Model) {
	t.Helper()
	replay(t, file, open)
}

// Scrub removes keys from a text.
func Scrub(text, key string) string { return scrub(text, key) }
