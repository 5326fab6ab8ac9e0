package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

func TestDeclare(t *testing.T) {
	t.Parallel()
	fit := func(raw json.RawMessage) (json.RawMessage, error) {
		if string(raw) == "bad" {
			return nil, errors.New("bad schema")
		}
		return json.RawMessage(`{}`), nil
	}
	declared, names, err := wire.Declare([]belay.ToolDeclaration{{Name: "look"}, {Name: "Wait", Description: "waits"}}, strings.ToLower, fit)
	want := []belay.ToolDeclaration{{Name: "look", InputSchema: json.RawMessage(`{}`)}, {Name: "wait", Description: "waits", InputSchema: json.RawMessage(`{}`)}}
	if diff := cmp.Diff(want, declared); diff != "" || err != nil {
		t.Errorf("%v, declarations (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]string{"wait": "Wait"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	_, _, err = wire.Declare([]belay.ToolDeclaration{{}, {Name: "a", InputSchema: json.RawMessage("bad")}, {Name: "Look"}, {Name: "look"}}, strings.ToLower, fit)
	for _, part := range []string{`tool "": the tool has no name`, `tool "a": bad schema`, `tool "look": `, `the same name as for tool "Look"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
}
