package hooktest

import (
	"testing"
	"time"
)

// OpenWork opens a store for a rule of TestWorkQueue.
type OpenWork func(t testing.TB, capacity, workers int) Store

// WorkRules are the rules of TestWorkQueue. They wait no longer than patience.
func WorkRules(patience time.Duration) []NamedRule[OpenWork] {
	var named []NamedRule[OpenWork]
	for _, r := range workRules() {
		named = append(named, NamedRule[OpenWork]{r.name, func(t testing.TB, open OpenWork) {
			r.check(t, workSubject{open, patience})
		}})
	}
	return named
}
