package belay

import (
	"context"
	"iter"
)

// BusStore is a Store that carries messages between the processes that use it. Messages are
// not stored. A message can be lost: a process must not depend on it.
type BusStore interface {
	Store
	// Broadcast sends a message to the other processes. A message is UTF-8 text without zero
	// bytes, of at most MostBroadcast bytes.
	Broadcast(ctx context.Context, message string) error
	// Broadcasts yields the messages of other processes, until ctx ends or the store is
	// closed. It drops messages while the caller is too slow. Receiving begins when
	// Broadcasts returns.
	Broadcasts(ctx context.Context) iter.Seq[string]
}

// MostBroadcast is the maximum size of a message of a [BusStore] in bytes. PostgreSQL allows
// 8000 bytes.
const MostBroadcast = 7000
