package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

func TestHeadsAreKept(t *testing.T) {
	t.Parallel()
	var heads wire.Heads
	encoded := 0
	get := func(req *belay.Request, bound int, quiet bool) *wire.Head {
		head, err := heads.For(req, bound, quiet, func() ([]byte, map[string]string, error) {
			encoded++
			return fmt.Append(nil, encoded), nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	schema := json.RawMessage(`{"a":1}`)
	req := &belay.Request{System: "s", Tools: []belay.ToolDeclaration{{Name: "look", InputSchema: schema}}}
	first := get(req, 1, false)
	if get(req, 1, false) != first {
		t.Error("the same head was encoded twice")
	}
	if get(req, 2, false) == first || get(req, 1, true) == first || get(&belay.Request{System: "s"}, 1, false) == first {
		t.Error("heads that differ were taken for the same")
	}
	schema[5] = '2' // the caller may change the bytes after the call
	if get(req, 1, false) == first {
		t.Error("a changed schema was not noticed")
	}
	schema[5] = '1'
	for i := range 8 {
		get(&belay.Request{System: fmt.Sprint(i)}, 1, false)
	}
	if get(req, 1, false) == first {
		t.Error("more than the last few heads are kept")
	}
	if _, err := heads.For(req, 9, false, func() ([]byte, map[string]string, error) { return nil, nil, errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v, want the error of encoding", err)
	}
}
