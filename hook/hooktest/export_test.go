package hooktest

import (
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// Tests use these exports to run the suites' rules one by one on broken implementations.

// NamedRule is a rule of a suite.
type NamedRule[S any] struct {
	Name  string
	Check func(t testing.TB, s S)
}

// JournalRules are the rules of TestJournal.
func JournalRules() []NamedRule[hook.Journal] {
	var named []NamedRule[hook.Journal]
	for _, r := range journalRules() {
		named = append(named, NamedRule[hook.Journal]{r.name, r.check})
	}
	return named
}

// OpenStore opens a store for a rule of TestQueue.
type OpenStore func(t testing.TB, capacity int) Store

// QueueRules are the rules of TestQueue. They wait no longer than patience.
func QueueRules(patience time.Duration) []NamedRule[OpenStore] {
	var named []NamedRule[OpenStore]
	for _, r := range queueRules() {
		named = append(named, NamedRule[OpenStore]{r.name, func(t testing.TB, open OpenStore) {
			r.check(t, queueSubject{open, patience})
		}})
	}
	return named
}

var (
	CheckSecrets = checkSecrets
	FullRun      = fullRun
	FullJob      = fullJob
	LineDiff     = lineDiff
)

// SecretMark and SafeMark are the beginnings of the words that TestSecrets searches for.
const (
	SecretMark = secretMark
	SafeMark   = safeMark
)
