package toolbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/toolbox"
)

func TestGrep(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("a.go", "package a\n\nfunc Alpha() {}\n// alpha calls\nfunc Beta() {}\n")
	k.put("sub/b.ts", "const alpha = 1\r\nlet x = alpha\r\n")
	k.put("bin", "alpha\x00\n")
	for _, test := range []struct {
		rule  string
		input in
		want  string
	}{
		{"lines come by file, with their numbers", in{"pattern": "alpha"}, "a.go\n4: // alpha calls\n\nsub/b.ts\n1: const alpha = 1\n2: let x = alpha"},
		{"case can be ignored", in{"pattern": "ALPHA", "ignore_case": true, "glob": "*.go"}, "a.go\n3: func Alpha() {}\n4: // alpha calls"},
		{"an expression is one", in{"pattern": `^func \w+\(`}, "a.go\n3: func Alpha() {}\n5: func Beta() {}"},
		{"plain text is plain", in{"pattern": "Alpha()", "literal": true}, "a.go\n3: func Alpha() {}"},
		{"the end of a line is one, CRLF too", in{"pattern": `alpha$`}, "sub/b.ts\n2: let x = alpha"},
		{"lines around come with a dash", in{"pattern": "calls", "context": 1}, "a.go\n3- func Alpha() {}\n4: // alpha calls\n5- func Beta() {}"},
		{"lines around are not told twice", in{"pattern": "func", "context": 1, "glob": "*.go"}, "a.go\n2- \n3: func Alpha() {}\n4- // alpha calls\n5: func Beta() {}"},
		{"a gap is marked", in{"pattern": "package|Beta", "context": 1}, "a.go\n1: package a\n2- \n--\n4- // alpha calls\n5: func Beta() {}"},
		{"files alone", in{"pattern": "alpha", "mode": "files"}, "a.go\nsub/b.ts"},
		{"counts alone", in{"pattern": "alpha", "mode": "count"}, "a.go: 1\nsub/b.ts: 2"},
		{"one file", in{"pattern": "alpha", "path": "sub/b.ts", "limit": 1}, "sub/b.ts\n1: const alpha = 1\n[the first 1 match; there are more: narrow the pattern, path or glob]"},
		{"a limit that is just reached cuts nothing", in{"pattern": "alpha", "limit": 3}, "a.go\n4: // alpha calls\n\nsub/b.ts\n1: const alpha = 1\n2: let x = alpha"},
		{"a limit over files", in{"pattern": "alpha", "mode": "files", "limit": 1}, "a.go\n[the first 1 file; there are more: narrow the pattern, path or glob]"},
		{"a directory and a glob", in{"pattern": "alpha", "path": "sub", "glob": "*.go"}, "No line matches."},
		{"a match does not go from line to line", in{"pattern": `Alpha[^z]*calls`}, "No line matches."},
		{"a pattern that could does not hide a line", in{"pattern": `func[^z]*Beta|Beta`}, "a.go\n5: func Beta() {}"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got := k.ok("grep", test.input); got != test.want {
				t.Errorf("%v =\n%s\nwant\n%s", test.input, got, test.want)
			}
		})
	}
	k.fails(belay.ClassInvalid, "grep", in{"pattern": "a("}, "not a regular expression", "literal")
	k.fails(belay.ClassInvalid, "grep", in{"pattern": "a", "glob": "["}, "not a pattern")
	k.fails(belay.ClassNotFound, "grep", in{"pattern": "a", "path": "none"}, "does not exist")

	v := view[toolbox.GrepView](t, k.call("grep", in{"pattern": "alpha"}))
	if v.Kind != "grep" || v.Matches != 3 || len(v.Files) != 2 || v.Files[1].Lines[1] != (toolbox.GrepLine{Line: 2, Text: "let x = alpha"}) {
		t.Errorf("view = %+v", v)
	}
}

func TestGrepShowsWhereALongLineMatches(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("min.js", strings.Repeat("é", 5000)+"needle"+strings.Repeat("é", 5000)+"\nnext needle\n")
	got := k.ok("grep", in{"pattern": "needle"})
	if has(t, got, "needle", "[...] ", "2: next needle"); len(got) > 1000 || strings.Contains(got, "\ufffd") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// Searching in blocks of any size finds the same lines as a line-by-line search.
func TestSearchInBlocks(t *testing.T) {
	t.Parallel()
	patterns := []string{"a", "ab", "^a", "b$", "a+b", "[^a]b", `\bab\b`, "a|^$", `\s`, "(?s)a.b", `a\z`, "x*", `[^x]+y`, "(?i)AB y", "a b|Y|bb", "(ab)+", "b{2,3}y?", `(?i)B|^\s`}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SampledFrom(patterns).Draw(t, "pattern")
		around := rapid.IntRange(0, 3).Draw(t, "around")
		lines := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("abB yY")), 0, 12, -1), 0, 60).Draw(t, "lines")
		block := rapid.IntRange(16, 200).Draw(t, "block")
		text := strings.Join(lines, "\n")
		if rapid.Bool().Draw(t, "ends") && len(lines) > 0 {
			text += "\n"
		}
		if text == "" {
			return
		}
		var want, near []int
		re := regexp.MustCompile(pattern)
		all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		for i, line := range all {
			if re.MatchString(line) {
				want = append(want, i+1)
			}
		}
		for i := range all {
			if slices.ContainsFunc(want, func(w int) bool { return w-around <= i+1 && i < w+around }) {
				near = append(near, i+1)
			}
		}
		got, shown, err := toolbox.Search(context.Background(), pattern, around, block, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %q: lines %v, want %v", pattern, text, got, want)
		}
		if around*13 < block/2 && !slices.Equal(shown, near) { // otherwise the block has no room for the context
			t.Fatalf("%q in %q: shown %v, want %v", pattern, text, shown, near)
		}
	})
}

func TestGrepDoesNotHoldFilesInMemory(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	k := newKit(t, nil)
	line := strings.Repeat("x", 99) + "\n"
	f, err := os.Create(filepath.Join(k.dir, "big.log"))
	if err != nil {
		t.Fatal(err)
	}
	for range 64 {
		if _, err := f.WriteString(strings.Repeat(line, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("needle\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := k.ok("grep", in{"pattern": "needle"})
	runtime.ReadMemStats(&after)
	if got != "big.log\n640001: needle" {
		t.Errorf("grep = %q", got)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("searching 64 MB allocated %d bytes", took)
	}
}

func TestGrepIsInOrder(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	var want bytes.Buffer
	for i := range 400 {
		name := fmt.Sprintf("d%02d/f%03d", i/20, i)
		k.put(name, strings.Repeat("x\n", i%7*500)+"needle\n")
		if i < 150 {
			fmt.Fprintln(&want, name)
		}
	}
	for range 3 {
		got := k.ok("grep", in{"pattern": "needle", "mode": "files", "limit": 150})
		if !strings.HasPrefix(got, want.String()) || !strings.HasSuffix(got, "[the first 150 files; there are more: narrow the pattern, path or glob]") {
			t.Fatalf("files = %s", got)
		}
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	for i := range 100 {
		k.put(fmt.Sprintf("f%02d", i), "x\n")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	for tool, input := range map[string]in{"grep": {"pattern": "x"}, "glob": {"pattern": "*"}, "list": {}, "write": {"path": "new", "content": ""}} {
		data, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.tools[tool].Call(ctx, &belay.Invocation{Tool: tool, Input: data}); !errors.Is(err, cause) {
			t.Errorf("%s: err = %v, want the cause", tool, err)
		}
	}
}
