package providertest

import (
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// NamedRule is a rule of the suite, so that tests can hold broken models against
// them one by one.
type NamedRule struct {
	Name  string
	Check func(t testing.TB, open func(t testing.TB, server Server) belay.Model)
}

// AnthropicRules are the rules of Test, played on Anthropic servers. They give up
// what does not happen after patience.
func AnthropicRules(patience time.Duration) []NamedRule {
	var named []NamedRule
	for _, r := range rules() {
		named = append(named, NamedRule{r.name, func(t testing.TB, open func(t testing.TB, server Server) belay.Model) {
			r.check(newScene(t, patience, StartAnthropic, open))
		}})
	}
	return named
}
