package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
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
	for _, part := range []string{`tool "": it has no name`, `tool "a": bad schema`, `tool "look": `, `tool "Look" already has`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
}

func TestHeadsAreKept(t *testing.T) {
	t.Parallel()
	var heads wire.Heads
	encoded := 0
	get := func(req *belay.Request, bound int, quiet bool) *wire.Head {
		head, err := heads.Get(req, bound, quiet, func() ([]byte, map[string]string, error) {
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
	schema[5] = '2' // the caller may use the bytes again
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
	if _, err := heads.Get(req, 9, false, func() ([]byte, map[string]string, error) { return nil, nil, errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v, want the error of encoding", err)
	}
}

func TestCatalogs(t *testing.T) {
	t.Parallel()
	catalog := wire.CatalogOf("deepseek")
	names := catalog.Names()
	if len(names) == 0 || wire.CatalogAt("api.deepseek.com") != catalog {
		t.Fatalf("got %q, want the models of DeepSeek, by name and by host", names)
	}
	if m := catalog.Find(names[0]); m == nil || m.ID != names[0] {
		t.Errorf("got %+v, want %s", m, names[0])
	}
	if none := wire.CatalogOf("nobody"); none != nil || none.Find("m") != nil || none.Names() != nil || wire.CatalogAt("nowhere") != nil {
		t.Error("a provider that is not in the table has a catalog")
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	listed := &catwalk.Model{ContextWindow: 100, DefaultMaxTokens: 10}
	price := func(*catwalk.Model) belay.Price { return belay.Price{In: 1} }
	for _, test := range []struct {
		rule string
		got  belay.ModelInfo
		want belay.ModelInfo
	}{
		{"a model that is not listed has its name", wire.Info("p/m", nil, price, 0, belay.Price{}), belay.ModelInfo{Name: "p/m"}},
		{"a listed model has what the table says", wire.Info("p/m", listed, price, 0, belay.Price{}), belay.ModelInfo{Name: "p/m", Window: 100, MaxOutput: 10, Price: belay.Price{In: 1}}},
		{"options overrule the table", wire.Info("p/m", listed, price, 7, belay.Price{Out: 2}), belay.ModelInfo{Name: "p/m", Window: 7, MaxOutput: 10, Price: belay.Price{Out: 2}}},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.rule, diff)
		}
	}
}

func TestModelNames(t *testing.T) {
	t.Parallel()
	f := wire.NewFailures("p/m", "")
	for _, test := range []struct {
		rule, kind, body string
		bare             bool
		want             []string
		failure          belay.ModelErrorKind
	}{
		{"names are sorted", "application/json", `{"data":[{"id":"b"},{"id":"a"}]}`, false, []string{"a", "b"}, ""},
		{"a bare list may count", "application/json", ` [{"id":"a"}]`, true, []string{"a"}, ""},
		{"a bare list may not count", "application/json", `[{"id":"a"}]`, false, nil, belay.ModelServer},
		{"what is not JSON is the server's fault", "application/json", `<html>`, true, nil, belay.ModelServer},
		{"a page is not a list", "text/html", `{"data":[]}`, true, nil, belay.ModelInvalid},
	} {
		names, err := f.ModelNames(t.Context(), answerOf(http.StatusOK, test.kind, strings.NewReader(test.body)), test.bare)
		failure, _ := errors.AsType[*belay.ModelError](err)
		if !slices.Equal(names, test.want) || (err != nil) != (test.failure != "") || failure != nil && failure.Kind != test.failure {
			t.Errorf("%s: got %q, %v, want %q, %s", test.rule, names, err, test.want, test.failure)
		}
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"localhost:1", "ftp://localhost", "http://[", "https://", "https://user:\x7fsecret@host", "ftp://user:secret@host"} {
		_, err := wire.ParseURL(address, "https://host")
		if err == nil || !strings.HasPrefix(err.Error(), "Options.URL: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want an error about Options.URL without the password", address, err)
		}
	}
	if u, err := wire.ParseURL("http://localhost:11434/v1", ""); err != nil || u.Host != "localhost:11434" {
		t.Errorf("got %v, %v, want the address", u, err)
	}
}
