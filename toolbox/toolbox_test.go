package toolbox_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/toolbox"
)

func names(tools []belay.Tool) string {
	var all []string
	for _, tool := range tools {
		all = append(all, tool.Declaration().Name)
	}
	return strings.Join(all, " ")
}

func TestWhichTools(t *testing.T) {
	t.Parallel()
	root := openRoot(t, t.TempDir())
	for _, test := range []struct {
		rule  string
		tools []belay.Tool
		want  string
	}{
		{"NoShell leaves out the shell", toolbox.New(root, &toolbox.Options{NoShell: true}).Tools(), "read list glob grep write edit"},
		{"all of them", toolbox.New(root, nil).Tools(), "read list glob grep write edit shell"},
		{"what only reads changes nothing", toolbox.New(root, &toolbox.Options{ReadOnly: true}).Tools(), "read list glob grep"},
	} {
		if got := names(test.tools); got != test.want {
			t.Errorf("%s: %s, want %s", test.rule, got, test.want)
		}
	}
}

// SPEC T-03
func TestWhatChangesThingsIsSerial(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	for name, tool := range k.tools {
		traits := tool.(belay.TraitTool).Traits()
		changes := slices.Contains([]string{"write", "edit", "shell"}, name)
		if traits.Serial != changes || traits.Idempotent == changes || traits.MustFinish {
			t.Errorf("%s: traits = %+v", name, traits)
		}
	}
}

func TestSchemasAreStrict(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	for _, name := range slices.Sorted(maps.Keys(k.tools)) {
		schema := struct {
			Properties           map[string]any `json:"properties"`
			Required             []string       `json:"required"`
			AdditionalProperties *bool          `json:"additionalProperties"` //nolint:tagliatelle // JSON Schema spells it
		}{}
		if err := json.Unmarshal(k.tools[name].Declaration().InputSchema, &schema); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s: takes a property that it does not know", name)
		}
		for _, property := range schema.Required {
			if schema.Properties[property] == nil {
				t.Errorf("%s: requires %s and does not have it", name, property)
			}
		}
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	for i := range 20 {
		k.put(fmt.Sprintf("dir%d/file.txt", i), "one\ntwo\n")
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			session, name := fmt.Sprint("s", i), fmt.Sprintf("dir%d/file.txt", i)
			for _, call := range []struct {
				tool  string
				input in
			}{
				{"read", in{"path": name}},
				{"grep", in{"pattern": "two"}},
				{"glob", in{"pattern": "*.txt"}},
				{"list", in{}},
				{"edit", in{"path": name, "old_string": "two", "new_string": "three"}},
				{"write", in{"path": name, "content": "four"}},
			} {
				if r := k.callAs(session, call.tool, call.input); r.IsError {
					t.Errorf("%s: %s", call.tool, r.Text)
				}
			}
		})
	}
	wg.Wait()
	for i := range 20 {
		if got := k.content(fmt.Sprintf("dir%d/file.txt", i)); got != "four" {
			t.Errorf("file %d = %q", i, got)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := toolbox.NewMemory(2)
	m.Saw("s", "a")
	m.Saw("s", "b")
	if !m.Knows("s", "a") || m.Knows("other", "a") {
		t.Error("a session knows what it has read, and no other does")
	}
	m.Saw("s", "c")
	if !m.Knows("s", "a") || m.Knows("s", "b") || !m.Knows("s", "c") {
		t.Error("what was not used for longest is forgotten first")
	}
}
