package storetest

import (
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// NamedRule is a rule of the suite. Tests run it on broken stores.
type NamedRule struct {
	Name  string
	Check func(t testing.TB, s belay.Store, opts Options)
}

// Rules returns the rules of Test.
func Rules() []NamedRule {
	var named []NamedRule
	for _, r := range rules() {
		named = append(named, NamedRule{r.name, func(t testing.TB, s belay.Store, opts Options) {
			r.check(t, &subject{Store: s, opts: opts})
		}})
	}
	return named
}

// NamedTurnRule is a rule of TestTurns.
type NamedTurnRule struct {
	Name  string
	Check func(t testing.TB, s belay.TurnStore)
}

// TurnRules returns the rules of TestTurns, with a shorter timeout.
func TurnRules() []NamedTurnRule {
	var named []NamedTurnRule
	for _, r := range turnRules {
		named = append(named, NamedTurnRule{r.name, func(t testing.TB, s belay.TurnStore) { r.check(t, &turns{s, 300 * time.Millisecond}) }})
	}
	return named
}

// NamedGoneRule is a rule of TestTurnsOfTheGone.
type NamedGoneRule struct {
	Name  string
	Check func(t testing.TB, s belay.TurnStore, end func(t testing.TB, s belay.TurnStore) belay.TurnStore)
}

// GoneRules returns the rules of TestTurnsOfTheGone, with a shorter timeout.
func GoneRules() []NamedGoneRule {
	var named []NamedGoneRule
	for _, r := range goneRules {
		named = append(named, NamedGoneRule{r.name, func(t testing.TB, s belay.TurnStore, end func(testing.TB, belay.TurnStore) belay.TurnStore) {
			r.check(t, &turns{s, 300 * time.Millisecond}, end)
		}})
	}
	return named
}

// These functions return the samples of the suite.
var (
	FullMessage  = fullMessage
	FullCall     = fullCall
	FullState    = fullState
	FullApproval = fullApproval
	Decision     = decision
)

// Same is the comparison that the suite uses.
var Same = same
