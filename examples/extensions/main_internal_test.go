package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// evening is a time outside office hours.
func evening() time.Time { return time.Date(2026, time.March, 2, 18, 30, 0, 0, time.UTC) }

// The example program runs without a key and without a network.
func Example() {
	if err := run(context.Background(), os.Stdout, io.Discard, evening); err != nil {
		fmt.Println(err)
	}
	// Output:
	// > What has Ann ordered? Then deploy.
	//   orders: 2 orders of ann at acme, paid with card [REDACTED]
	//   deploy: Denied by "hours": deploy can be called from 09:00 to 17:00, and it is 18:30
	// Do not repeat this call. Reach the goal in another way, or tell the user what you need.
	// end_turn: It has to wait until tomorrow.
	// > And now?
	// blocked: the agent has cost $0.60 of $0.50
}
