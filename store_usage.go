package belay

import (
	"context"
	"time"
)

// UsageStore is a Store that can add up what turns have used. It counts the stored responses and
// summaries at their own times, also those of subagents. A fork does not count the messages that
// it copies.
type UsageStore interface {
	Store
	// Usage adds up the usage that matches, and returns one sum for each key, sorted by key.
	Usage(ctx context.Context, filter UsageFilter) ([]UsageSum, error)
}

// UsageFilter selects usage, and says how to add it up.
type UsageFilter struct {
	// Since and Until select responses by their day, in UTC. The day of Since counts. The day
	// of Until counts only if Until is not its first moment.
	Since, Until time.Time
	// Labels selects sessions that have all of these labels with these values. A subagent's
	// session has the labels of its parent.
	Labels map[string]string
	// By says what the keys of the sums are. Defaults to one sum with an empty key.
	By UsageKey
	// Label is the name of the label whose values are the keys, for ByLabel.
	Label string
}

// UsageKey says what the keys of sums are.
type UsageKey string

// The keys.
const (
	ByDay   UsageKey = "day" // as 2006-01-02, in UTC
	ByAgent UsageKey = "agent"
	ByModel UsageKey = "model"
	ByLabel UsageKey = "label"
)

// UsageSum is the usage of all responses with one key.
type UsageSum struct {
	Key   string
	Usage Usage
	// Turns and Sessions count the turns and sessions with a response, without those of
	// subagents.
	Turns, Sessions int
}
