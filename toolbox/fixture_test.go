package toolbox_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type in = map[string]any

func call(tool, input string) scripted.Call { return scripted.Call{Tool: tool, Input: input} }

// kit is a project in a temporary directory, with its tools.
type kit struct {
	t     *testing.T
	dir   string
	tools map[string]belay.Tool
}

func newKit(t *testing.T, opts *toolbox.Options) *kit {
	t.Helper()
	k := &kit{t: t, dir: filepath.Join(t.TempDir(), "demo"), tools: map[string]belay.Tool{}}
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tool := range toolbox.New(openRoot(t, k.dir), opts).Tools() {
		k.tools[tool.Declaration().Name] = tool
	}
	return k
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// put writes a file directly, without the tools.
func (k *kit) put(name, content string) {
	k.t.Helper()
	name = filepath.Join(k.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// content reads a file directly, without the tools.
func (k *kit) content(name string) string {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.dir, name))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(data)
}

func (k *kit) callAs(session, tool string, input in) belay.Result {
	k.t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		k.t.Fatal(err)
	}
	result, err := k.tools[tool].Call(k.t.Context(), &belay.Invocation{ID: "call", Tool: tool, Session: session, Input: data})
	if err != nil {
		k.t.Fatalf("%s %s: %v", tool, data, err)
	}
	return result
}

func (k *kit) call(tool string, input in) belay.Result {
	k.t.Helper()
	return k.callAs("s", tool, input)
}

// ok makes a call that must succeed, and returns the text of the result.
func (k *kit) ok(tool string, input in) string {
	k.t.Helper()
	r := k.call(tool, input)
	if r.IsError {
		k.t.Fatalf("%s %v: %s: %s", tool, input, r.Class, r.Text)
	}
	return r.Text
}

// fails makes a call that must fail with the given class and with these parts in its
// text.
func (k *kit) fails(class belay.ResultClass, tool string, input in, parts ...string) {
	k.t.Helper()
	r := k.call(tool, input)
	if !r.IsError || r.Class != class {
		k.t.Errorf("%s %v = %q, class %q: want a failure of class %s", tool, input, r.Text, r.Class, class)
	}
	has(k.t, r.Text, parts...)
}

// has checks that a text contains all parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// view decodes the render data of a result.
func view[V any](t *testing.T, r belay.Result) V {
	t.Helper()
	var v V
	if err := json.Unmarshal(r.Render, &v); err != nil {
		t.Fatalf("render data %s: %v", r.Render, err)
	}
	return v
}
