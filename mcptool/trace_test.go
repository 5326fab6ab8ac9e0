package mcptool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tracecontext"
	"github.com/belay-run/belay/mcptool"
)

// span is a span of a trace.
type span string

func (s span) Traceparent() string { return string(s) }

// A server gets the trace context of a call in the field _meta, where the protocol has a place
// for it.
//
// SPEC O-01
func TestServersGetTheTraceContext(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}), child(t, "test", "full", nil))
	parent := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traced := context.WithValue(t.Context(), tracecontext.Key{}, span(parent))
	r, err := tool(t, e, "test__environ").Call(traced, &belay.Invocation{ID: "call_1", Tool: "test__environ", Input: json.RawMessage(`{}`)})
	if err != nil || !strings.Contains(r.Text, "\ntraceparent "+parent) {
		t.Errorf("the server did not get the trace context: %v, %s", err, r.Text)
	}
	if r := call(t, e, "test__environ", `{}`); strings.Contains(r.Text, "traceparent") {
		t.Errorf("a call without a trace has a trace context: %s", r.Text)
	}
}
