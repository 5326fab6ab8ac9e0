//go:build unix

package permit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/permit"
)

// attack is an entry of testdata/attacks: a call, and the mildest verdict that the floor
// may give. In texts, {{project}}, {{outside}}, {{home}} and {{tmp}} stand for the
// directories of the stage.
type attack struct {
	// Name says what the trick is, or why the call is harmless. It is unique.
	Name string `yaml:"name"`
	Tool string `yaml:"tool"`
	// Input is the tool's input. Raw is the input as JSON, for inputs that YAML cannot
	// express.
	Input map[string]any `yaml:"input"`
	Raw   string         `yaml:"raw"`
	Setup []prop         `yaml:"setup"`
	Mode  string         `yaml:"mode"` // standard if empty
	// Expect is the mildest allowed verdict: ask, deny, or never (zone 6). For a harmless
	// call it is pass, and the verdict must be exactly that.
	Expect string `yaml:"expect"`
	Why    string `yaml:"why"`
	// Run is "no" if the tests must not run the command. Then Reason says why.
	Run    string `yaml:"run"`
	Reason string `yaml:"reason"`
	// Marks is a file that the command creates if nothing stops it. A test without a
	// sandbox checks that the command creates this file.
	Marks string `yaml:"marks"`

	file string
}

// prop is a file or a link that is on the stage before the attack.
type prop struct {
	File     *struct{ At, Text string } `yaml:"file"`
	Link     *struct{ At, To string }   `yaml:"link"`
	Hardlink *struct{ At, To string }   `yaml:"hardlink"`
}

// The verdicts, from the mildest to the most severe.
var verdicts = []string{"pass", "ask", "deny", "never"}

// attacks returns the corpus. An invalid entry fails the test.
func attacks(t *testing.T) []attack {
	t.Helper()
	all, err := corpus()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(all)
}

// corpus reads the files of the corpus, once, because it takes a second.
var corpus = sync.OnceValues(func() (all []attack, err error) {
	files, err := filepath.Glob(filepath.Join("testdata", "attacks", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there is no corpus: %w", err)
	}
	var problems []error
	seen := map[string]string{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var entries []attack
		decoder := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
		if err := decoder.Decode(&entries); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := decoder.Decode(&entries); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: there is a second document", name)
		}
		for i := range entries {
			a := &entries[i]
			a.file = strings.TrimSuffix(filepath.Base(name), ".yaml")
			if problem := a.problem(); problem != "" {
				problems = append(problems, fmt.Errorf("%s: entry %d, %q: %s", name, i+1, a.Name, problem))
			}
			if other := seen[a.Name]; other != "" {
				problems = append(problems, fmt.Errorf("%s: %q is in %s too: names are unique", name, a.Name, other))
			}
			seen[a.Name] = name
		}
		all = append(all, entries...)
	}
	return all, errors.Join(problems...)
})

// problem returns what is wrong with an entry, or an empty text.
func (a *attack) problem() string {
	_, modeErr := a.mode()
	switch {
	case a.Name == "" || a.Tool == "" || a.Why == "":
		return "an entry has a name, a tool and a why"
	case !slices.Contains(verdicts, a.Expect):
		return "expect is one of " + strings.Join(verdicts, ", ")
	case (a.Input == nil) == (a.Raw == ""):
		return "an entry has an input or a raw input"
	case modeErr != nil:
		return modeErr.Error()
	case a.Marks != "" && (a.Tool != "shell" || a.Run == "no" || !strings.HasPrefix(a.Marks, "{{")):
		return "marks is a file on the stage that a command makes which is run"
	case a.Run != "" && a.Run != "no", (a.Run == "no") != (a.Reason != ""):
		return `run is "no", with a reason, or left out`
	}
	for _, p := range a.Setup {
		if count := len(slices.DeleteFunc([]bool{p.File != nil, p.Link != nil, p.Hardlink != nil}, func(is bool) bool { return !is })); count != 1 {
			return "a step of the setup is a file, a link or a hardlink"
		}
	}
	return ""
}

func (a *attack) mode() (permit.Mode, error) {
	if a.Mode == "" {
		return permit.Standard, nil
	}
	return permit.ModeOf(a.Mode)
}

// benign reports whether the entry is a harmless call that must run without a question.
func (a *attack) benign() bool {
	return a.Expect == "pass" && slices.Contains([]string{"", "standard", "build", "permissive"}, a.Mode)
}

// stage has the directories of an attack. The project and the directory outside have the
// same parent.
type stage struct{ project, outside, home, tmp string }

func newStage(t *testing.T, top string) *stage {
	t.Helper()
	top, err := filepath.EvalSymlinks(top)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{filepath.Join(top, "project"), filepath.Join(top, "outside"), filepath.Join(top, "home"), filepath.Join(top, "tmp")}
	for name, text := range map[string]string{
		"outside/secret": "the secret outside\n", "outside/dir/x": "x\n", "outside/script.sh": "echo x\n", "outside/script.py": "print('x')\n", "outside/script.awk": "{ print }\n",
		"home/.profile": "# nothing\n", "home/.bashrc": "# nothing\n", "home/.ssh/id_ed25519": "the key\n", "home/documents/letter.txt": "dear\n",
		"project-backup/secret": "the secret of a neighbour\n",
	} {
		put(t, filepath.Join(top, name), text)
	}
	for _, dir := range []string{s.project, s.tmp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	filetest.WriteProgram(t, name, text) // executable, because some are scripts
}

// fill replaces placeholders such as {{project}} with the directories.
func (s *stage) fill(text string) string {
	return strings.NewReplacer("{{project}}", s.project, "{{outside}}", s.outside, "{{home}}", s.home, "{{tmp}}", s.tmp).Replace(text)
}

func (s *stage) fillValue(v any) any {
	switch v := v.(type) {
	case string:
		return s.fill(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = s.fillValue(v[i])
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(v))
		for name, value := range v {
			fields[name] = s.fillValue(value)
		}
		return fields
	default:
		return v
	}
}

// set creates the props of an attack on the stage.
func (s *stage) set(t *testing.T, a *attack) {
	t.Helper()
	place := func(at string) string {
		name := filepath.Join(s.project, s.fill(at))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, p := range a.Setup {
		var err error
		switch {
		case p.File != nil:
			put(t, place(p.File.At), s.fill(p.File.Text))
		case p.Link != nil:
			err = os.Symlink(s.fill(p.Link.To), place(p.Link.At))
		case p.Hardlink != nil:
			err = os.Link(s.fill(p.Hardlink.To), place(p.Hardlink.At))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// call returns the input of an attack on the stage.
func (s *stage) call(t *testing.T, a *attack) json.RawMessage {
	t.Helper()
	if a.Raw != "" {
		return json.RawMessage(s.fill(a.Raw))
	}
	data, err := json.Marshal(s.fillValue(a.Input))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// floor returns the floor of the stage. The shell is sandboxed, there is a tool fetch,
// and a space is loaded.
func (s *stage) floor(t *testing.T, mode permit.Mode) *permit.Floor {
	t.Helper()
	f, err := permit.New(s.project, &permit.Options{
		Mode: mode, Home: s.home, Temp: s.tmp, Sandboxed: true, Protect: []string{filepath.Join(s.project, "space")},
		Tools: map[string]permit.Profile{"fetch": {Zone: permit.ZoneNetwork, URLs: []string{"url"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// verdict returns the floor's verdict about a call.
func verdict(e *permit.Explanation) string {
	switch {
	case e.Zone >= permit.ZoneNever && e.Decision != belay.ToolDeny:
		return fmt.Sprintf("%q in zone 6", e.Decision) // not a valid verdict
	case e.Zone >= permit.ZoneNever:
		return "never"
	case e.Decision == belay.ToolPass:
		return "pass"
	default:
		return string(e.Decision)
	}
}

// The corpus must have many entries. Enough of them must be harmless, so that a floor
// that asks about everything fails.
func TestTheCorpusIsLarge(t *testing.T) {
	t.Parallel()
	all := attacks(t)
	benign := 0
	for i := range all {
		if all[i].benign() {
			benign++
		}
	}
	t.Logf("%d entries, %d of them benign", len(all), benign)
	if len(all) < 300 || 3*benign < len(all) {
		t.Errorf("the corpus has %d entries, %d of them benign: want at least 300, and a third of them", len(all), benign)
	}
}

// The floor judges every entry of the corpus at least as severely as Expect says.
// Harmless entries run without a question.
//
// SPEC P-02, P-03, P-04, P-06, P-07, P-14, P-15, P-16
func TestAttacks(t *testing.T) {
	t.Parallel()
	// The floor only looks, so attacks with the same props share a stage.
	stages := make(map[string]*stage)
	for _, a := range attacks(t) {
		var props strings.Builder
		for _, p := range a.Setup {
			fmt.Fprintf(&props, "%q %q %q\n", p.File, p.Link, p.Hardlink)
		}
		s, ok := stages[props.String()]
		if !ok {
			s = newStage(t, t.TempDir())
			s.set(t, &a)
			stages[props.String()] = s
		}
		t.Run(a.file+"/"+a.Name, func(t *testing.T) {
			t.Parallel()
			mode, err := a.mode()
			if err != nil {
				t.Fatal(err)
			}
			input := s.call(t, &a)
			e := s.floor(t, mode).Explain(t.Context(), a.Tool, input)
			got, want := slices.Index(verdicts, verdict(e)), slices.Index(verdicts, a.Expect)
			if got < want || a.Expect == "pass" && got != want {
				t.Errorf("%s %s\nwant %s (%s), got %s:\n%s", a.Tool, input, a.Expect, a.Why, verdict(e), e)
			}
		})
	}
}
