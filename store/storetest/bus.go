package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// TestBus checks an implementation of [belay.BusStore]. open returns two stores with the same
// data, as two processes would open them. Clean up with t.Cleanup.
func TestBus(t *testing.T, open func(t testing.TB) (one, other belay.BusStore)) {
	t.Helper()
	for _, r := range busRules {
		t.Run(r.name, func(t *testing.T) {
			one, other := open(t)
			r.check(t, one, other)
		})
	}
}

type busRule struct {
	name  string
	check func(t testing.TB, one, other belay.BusStore)
}

// mailOf receives messages until stop is called.
func mailOf(t testing.TB, s belay.BusStore) (messages <-chan string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), turnPatience)
	to, done := make(chan string, 100), make(chan struct{})
	received := s.Broadcasts(ctx)
	go func() { // ends with ctx, or when the store is closed
		defer close(done)
		for message := range received {
			to <- message
		}
		close(to)
	}()
	return to, func() { cancel(); <-done }
}

// connect sends messages until the receiver gets one, because a store may need a moment to
// connect.
func connect(t testing.TB, from belay.BusStore, to <-chan string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), turnPatience)
	defer cancel()
	for ctx.Err() == nil {
		if err := from.Broadcast(ctx, "hello"); err != nil {
			t.Fatalf("Broadcast: %v", err)
		}
		short, end := context.WithTimeout(ctx, nothing)
		select {
		case <-to:
			end()
			return
		case <-short.Done():
		}
		end()
	}
	t.Fatal("no message arrives")
}

// next returns the next message that is not a hello of connect.
func next(t testing.TB, from <-chan string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), turnPatience)
	defer cancel()
	for {
		select {
		case message := <-from:
			if message != "hello" {
				return message
			}
		case <-ctx.Done():
			t.Fatal("the message does not arrive")
		}
	}
}

var busRules = []busRule{
	{"messages reach the other process, unchanged and in order, and not the sender", func(t testing.TB, one, other belay.BusStore) {
		mine, stopMine := mailOf(t, one)
		defer stopMine()
		theirs, stop := mailOf(t, other)
		defer stop()
		connect(t, one, theirs)
		connect(t, other, mine)
		sent := []string{"first", `{"text": "it's \"quoted\" \\ %s $1"}`, "två\nlines é 🙂", strings.Repeat("x", belay.MostBroadcast), "last"}
		for _, message := range sent {
			if err := one.Broadcast(context.Background(), message); err != nil {
				t.Fatalf("Broadcast of %d bytes: %v", len(message), err)
			}
		}
		var got []string
		for range sent {
			got = append(got, next(t, theirs))
		}
		if !slices.Equal(got, sent) {
			t.Errorf("the other process got %.200q, want %.200q", got, sent)
		}
		if err := other.Broadcast(context.Background(), "from the other"); err != nil {
			t.Fatalf("Broadcast: %v", err)
		}
		if got := next(t, mine); got != "from the other" {
			t.Errorf("the sender got %.100q, want only the message of the other process", got)
		}
	}},
	{"every receiver of a process gets every message", func(t testing.TB, one, other belay.BusStore) {
		first, stopFirst := mailOf(t, other)
		defer stopFirst()
		second, stopSecond := mailOf(t, other)
		defer stopSecond()
		connect(t, one, first)
		connect(t, one, second)
		if err := one.Broadcast(context.Background(), "news"); err != nil {
			t.Fatalf("Broadcast: %v", err)
		}
		if a, b := next(t, first), next(t, second); a != "news" || b != "news" {
			t.Errorf("the receivers got %q and %q", a, b)
		}
	}},
	{"a message that is too large or no text is an error", func(t testing.TB, one, _ belay.BusStore) {
		for _, message := range []string{strings.Repeat("x", belay.MostBroadcast+1), "zero \x00 byte", "\xff"} {
			if err := one.Broadcast(context.Background(), message); err == nil {
				t.Errorf("a message of %d bytes that begins with %.20q is sent without an error", len(message), message)
			}
		}
	}},
	{"a message that nobody receives is no error", func(t testing.TB, one, _ belay.BusStore) {
		for i := range 3 {
			if err := one.Broadcast(context.Background(), fmt.Sprint("message ", i)); err != nil {
				t.Errorf("Broadcast: %v", err)
			}
		}
	}},
	{"receiving ends when its context ends", func(t testing.TB, _, other belay.BusStore) {
		_, stop := mailOf(t, other)
		stop() // waits for the end
	}},
}
