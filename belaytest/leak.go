package belaytest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// label is the pprof label of goroutines of turns. A goroutine passes the label on to
// goroutines that it starts, so goroutines of tools and hooks have it too. The value is
// the agent's tag, so that parallel tests do not see each other's goroutines.
const label = "belaytest"

var tags atomic.Int64

// newTag returns a new tag for an agent.
func newTag() string { return "agent-" + strconv.FormatInt(tags.Add(1), 10) }

// tagged runs the function do. All goroutines that the function starts have the tag.
func tagged(ctx context.Context, tag string, do func()) {
	pprof.Do(ctx, pprof.Labels(label, tag), func(context.Context) { do() })
}

// leaked returns the stacks of goroutines with the tag. It first waits a short time for
// goroutines that are ending.
func leaked(ctx context.Context, tag string) string {
	const first, last = time.Millisecond, 500 * time.Millisecond
	for pause := first; ; pause *= 2 {
		left := goroutines(tag)
		if left == "" || pause > last {
			return left
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return left
		}
	}
}

// goroutines returns the stacks of goroutines with the tag.
func goroutines(tag string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return fmt.Sprintf("the goroutines cannot be listed: %v", err)
	}
	var left []string
	mark := fmt.Sprintf("%q:%q", label, tag)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, mark) && !idleConnection(stack) {
			left = append(left, strings.TrimSpace(stack))
		}
	}
	return strings.Join(left, "\n\n")
}

// idleConnection reports whether a goroutine serves an HTTP connection that waits for the
// next request. The HTTP client keeps such connections for later turns. A connection
// whose response was not read to its end is not idle: its goroutines then have other
// stacks.
func idleConnection(stack string) bool {
	return strings.Contains(stack, "net/http.(*persistConn).writeLoop+") ||
		strings.Contains(stack, "net/http.(*persistConn).readLoop+") && strings.Contains(stack, "bufio.(*Reader).Peek+") ||
		strings.Contains(stack, "http2.(*clientConnReadLoop).run+") || strings.Contains(stack, "http2clientConnReadLoop).run+")
}
