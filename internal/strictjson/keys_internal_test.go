package strictjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzDistinctKeys checks that the fast path never accepts what the slow path refuses.
func FuzzDistinctKeys(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `1`, ` "a" `, `{"a":1,"b":[{"c":null},"d"]}`, `{"a":1,"A":2}`, `{"a":1,"a":2}`, `{"a":{"b":1,"B":2}}`, `[{"k":1,"\u212a":2}]`,
		`{"s":1,"ſ":2}`, `{"a\"":1,"b":"\\"}`, `{"a":1,}`, `{"a":[1,2,{"x":true,"y":false}] , "b" : -1.5e3}`, `{"a":1} 2`, `nul`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !haveDistinctKeys(data) {
			return
		}
		if err := checkKeys(json.NewDecoder(bytes.NewReader(data))); err != nil {
			t.Fatalf("the fast path accepts %q: %v", data, err)
		}
	})
}

// TestDistinctKeysAreFast checks that ordinary objects take the fast path, without
// allocations. json.Valid takes its scanner from a pool, which the race detector empties: so
// one allocation is accepted.
func TestDistinctKeysAreFast(t *testing.T) { //nolint:paralleltest // it counts allocations
	data := []byte(`{"name":"child","prompt":"say hello","more":{"list":[1,"two",{"three":null}]}}`)
	if n := testing.AllocsPerRun(100, func() {
		if !haveDistinctKeys(data) {
			t.Fatal("an ordinary object does not take the fast path")
		}
	}); n > 1 {
		t.Errorf("the fast path allocates %v times", n)
	}
}
