package storetest_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/probetest"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/store/storetest"
)

// same accepts the changes that a store may make, and finds other changes.
func TestSame(t *testing.T) {
	t.Parallel()
	now, empty := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), ""
	input := func(raw string) belay.CallRecord { return belay.CallRecord{Input: json.RawMessage(raw)} }
	for _, test := range []struct {
		rule      string
		want, got any
		differs   string // part of the reported difference, "" if there is none
	}{
		{"an empty list equals a missing list", belay.Message{Parts: []belay.Part{}}, belay.Message{}, ""},
		{"lists of different lengths differ", belay.Message{Parts: make([]belay.Part, 2)}, belay.Message{}, "it.Parts's length is 0, want 2"},
		{"a missing text differs from an empty text", belay.Message{PreModifiedText: &empty}, belay.Message{}, "it.PreModifiedText is"},
		{"an empty text differs from a missing text", belay.Message{}, belay.Message{PreModifiedText: &empty}, "it.PreModifiedText is"},
		{"a value differs from nil", belay.Message{}, nil, "it is"},
		{"a nested field counts", belay.Message{Parts: []belay.Part{belay.Text("a")}}, belay.Message{Parts: []belay.Part{belay.Text("b")}}, `it.Parts[0].Text is "b", want "a"`},
		{"a time may be rounded and in another zone", belay.Message{Time: now}, belay.Message{Time: now.Round(time.Microsecond).In(time.FixedZone("", 3600))}, ""},
		{"a time may not be rounded to milliseconds", belay.Message{Time: now}, belay.Message{Time: now.Round(time.Millisecond)}, "it.Time is"},
		{"a missing time differs from a time", belay.Message{Time: now}, belay.Message{}, "it.Time is"},
		{"JSON may have other white space and escapes", input(`{ "a" : "<" }`), input(`{"a":"\u003c"}`), ""},
		{"JSON keeps the order of keys", input(`{"a":1,"b":2}`), input(`{"b":2,"a":1}`), "it.Input is"},
		{"JSON keeps the spelling of numbers", input(`1.0`), input(`1`), "it.Input is 1, want 1.0"},
		{"JSON that is cut is not JSON", input(`[1`), input(`[1]`), "it.Input is"},
		{"data keeps every byte", belay.Media{Data: []byte{1, 2}}, belay.Media{Data: []byte{1, 3}}, "it.Data is 2 bytes from 0103"},
		{
			"settings are compared by their JSON form",
			belay.SetPolicy(policy.Min[int]("test.n").Set(1)), belay.SetPolicy(policy.Min[int]("test.n").Set(2)), `it.Policy is {"test.n":2}`,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p := probetest.Run(t, func(t testing.TB) { storetest.Same(t, "it", test.want, test.got) })
			if test.differs == "" {
				p.WantSuccess(t)
			} else {
				p.WantFailure(t, test.differs)
			}
		})
	}
}
