package scripted_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

func TestFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		fault  scripted.Fault
		want   *belay.ModelError // nil if the stream ends without an error
		chunks int
	}{
		{"a fault without a kind is one of the server", scripted.Fault{}, &belay.ModelError{Kind: belay.ModelServer}, 0},
		{
			"a fault has the kind, status and wait that it is given",
			scripted.Fault{Kind: belay.ModelRateLimited, Status: 429, RetryAfter: time.Second},
			&belay.ModelError{Kind: belay.ModelRateLimited, Status: 429, RetryAfter: time.Second}, 0,
		},
		{"a fault can come after chunks", scripted.Fault{Kind: belay.ModelNetwork, After: 2}, &belay.ModelError{Kind: belay.ModelNetwork}, 2},
		{"a fault comes at the latest where the response would", scripted.Fault{After: 99}, &belay.ModelError{Kind: belay.ModelServer}, 4},
		{"a stream can end before anything", scripted.Fault{Cut: true}, nil, 0},
		{"a stream can be cut", scripted.Fault{Cut: true, After: 3}, nil, 3},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			model := scripted.New([]scripted.Step{{Text: "one two three four", Fault: &test.fault}, {Text: "ok"}}, nil)
			h := listen(t.Context(), model, ask())
			if h.response != nil {
				t.Errorf("response = %+v, want none", h.response)
			}
			if len(h.chunks) != test.chunks {
				t.Errorf("%d chunks came, want %d", len(h.chunks), test.chunks)
			}
			if test.want == nil {
				if h.err != nil {
					t.Errorf("error = %v, want the stream to end without one", h.err)
				}
			} else if diff := cmp.Diff(error(test.want), h.err, cmpopts.IgnoreFields(belay.ModelError{}, "Model")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if got := textOf(answer(t, model, ask()).response); got != "ok" {
				t.Errorf("the next attempt says %q, want the next step", got)
			}
		})
	}
}

func TestFaultSaysItsMessage(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{{Fault: &scripted.Fault{Kind: belay.ModelAuth, Status: 401, Message: "no such key"}}}, nil)
	fails(t, model, ask(), belay.ModelAuth, "scripted/script", "HTTP 401", "no such key")
}

func TestHangEndsWhenCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := contextFor(t, time.Hour)
		defer cancel()
		start := time.Now()
		h := listen(ctx, scripted.New([]scripted.Step{{Text: "a b", Fault: &scripted.Fault{Hang: true, After: 1}}}, nil), ask())
		if len(h.chunks) != 1 || h.response != nil {
			t.Errorf("got %+v, want one chunk and no response", h)
		}
		isDeadline(t, h.err)
		if waited := time.Since(start); waited != time.Hour {
			t.Errorf("the stream ended after %s, want the deadline of an hour", waited)
		}
	})
}
