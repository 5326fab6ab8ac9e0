package frontmatter

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// checkPlain compares the fast path with the YAML library: the nodes, their lines, and the
// decoded values.
func checkPlain(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, head string,
) bool {
	t.Helper()
	fast, ok := readPlain(head, 2)
	if !ok {
		return false
	}
	slow, err := readYAML(head, 2)
	if err != nil {
		t.Fatalf("the fast path takes what the library refuses:\n%s\n%v", head, err)
	}
	if diff := cmp.Diff(slow, fast); diff != "" {
		t.Fatalf("the fast path reads another thing than the library (-library +fast):\n%s\n%s", head, diff)
	}
	decoded := map[string]any{}
	if err := yaml.Unmarshal([]byte(head), &decoded); err != nil {
		t.Fatalf("the library cannot decode what it parsed:\n%s\n%v", head, err)
	}
	plain := map[string]any{}
	for _, f := range fast {
		plain[f.Key] = decodedValue(f.Value)
	}
	if diff := cmp.Diff(decoded, plain, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the fast path means another thing than the library (-library +fast):\n%s\n%s", head, diff)
	}
	return true
}

// decodedValue returns a value in the form in which the library decodes it.
func decodedValue(v Value) any {
	switch v.Kind {
	case String:
		return v.Text
	case Int:
		n, _ := strconv.ParseUint(v.Text, 10, 64)
		return n
	case List:
		list := []any{}
		for _, item := range v.List {
			list = append(list, decodedValue(item))
		}
		return list
	case Map:
		m := map[string]any{}
		for _, f := range v.Map {
			m[f.Key] = decodedValue(f.Value)
		}
		return m
	default:
		return nil
	}
}

// SPEC K-06
func TestPlainMeansWhatYAMLMeans(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{
		"pdf", "Use when", "a", "x-y", "größe", "日本語", "it's", `say "x"`, "1", "10", "007", "1.0", "1e3", "0x1f", "-1", "+2", ".5", "true", "no", "null", "~", "on",
		"http://x/y", "a:b", "a: b", "x:", ":x", "#c", "a #b", "a#b", "- x", "-x", "[x]", "{x: y}", "a, b", "*x", "&x y", "!x", "%x", "@x", "`x`", "|", ">", ">-", "?x", "? x",
		"'x'", `"x"`, `"x\n"`, "'it''s'", `"a`, "'a", "\tx", "x\t", "x\r", "\u00a0x", "\u2028", "\u0085", "\ufeff", "\x07", "<<", "=", "...", "---", "Bash(git:*) Read", "2026-11-15", "1:20", "", " ", "[a, b]", "[a, 'b c', \"d\"]", "[a, [b]]", "[]", "[1, 2]", "[a, b", "[a,b,]", "<x>", "C:\\x", "50%", "a*b", "f(x)", "x!", "y?", "_", "Y", "NULL",
	})
	key := rapid.SampledFrom([]string{"name", "description", "priority", "hidden", "tags", "a", "b_c", "allowed-tools", "x1", "true", "null", "1", "a b", "Y", "ü", "a.b", "<<", "'q'"})
	line := rapid.Custom(func(t *rapid.T) string {
		indent := rapid.SampledFrom([]string{"", "", "", "", "  ", "  ", "    ", " ", "\t"}).Draw(t, "indent")
		value := strings.Join(rapid.SliceOfN(word, 0, 3).Draw(t, "words"), rapid.SampledFrom([]string{" ", " ", "", "  "}).Draw(t, "between"))
		switch rapid.IntRange(0, 9).Draw(t, "shape") {
		case 0:
			return indent + "- " + value
		case 1:
			return indent + value
		case 2:
			return indent + "# " + value
		case 3:
			return ""
		case 4:
			return indent + key.Draw(t, "key") + ":"
		case 5:
			return indent + key.Draw(t, "key") + ": " + value + rapid.SampledFrom([]string{" ", "\r", "  # c", " #"}).Draw(t, "behind")
		default:
			return indent + key.Draw(t, "key") + ": " + value
		}
	})
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 6).Draw(t, "lines")
		if checkPlain(t, strings.Join(lines, "\n")+rapid.SampledFrom([]string{"\n", ""}).Draw(t, "end")) {
			taken++
		}
	})
	if taken == 0 {
		t.Error("the fast path took nothing: the property says nothing")
	}
}

func FuzzPlain(f *testing.F) {
	for _, head := range plainHeads {
		f.Add(head)
	}
	f.Fuzz(func(t *testing.T, head string) {
		if checkText(head, 1) != nil || len(head) > 1<<10 {
			t.Skip()
		}
		checkPlain(t, head)
	})
}

// plainHeads are inputs that the fast path must read.
var plainHeads = []string{
	"name: pdf-processing\ndescription: Extract text, fill forms, merge files. Use when handling PDFs.\n",
	"name: x\ndescription: \"Quoted: with a colon\"\nlicense: 'MIT'\n",
	"name: x\nallowed-tools: Bash(git:*) Bash(jq:*) Read\npriority: 10\n",
	"name: x\ntags: [one, two, 'three four']\n",
	"name: x\ntags:\n  - one\n  - two\nagents:\n- main\n- \"reviewer\"\n",
	"name: x\nmetadata:\n  author: example-org\n  version: \"1.0\"\nlicense: Apache-2.0\n",
	"# a comment\nname: x\n\n\ndescription: größe 日本\n# the end\n",
	"name: x\r\ndescription: z\r\n",
	"name: x\nlicense:\n",
	"name: x\nlicense:\ndescription: z",
	"",
	"\n\n",
}

func TestPlainTakesWhatIsPlain(t *testing.T) {
	t.Parallel()
	for _, head := range plainHeads {
		if !checkPlain(t, head) {
			t.Errorf("the fast path gives up on\n%s", head)
		}
	}
	for _, head := range []string{ // inputs that are almost plain
		"name: x\n  y\n", "name: x\n\n  y\n", "a: b: c\n", "a: x:\n", "a: b #c\n", "a: *b\n", "a: 'it''s'\n", "a: \"\\n\"\n", "a: >\n  b\n",
		"a: true\n", "a: 1.0\n", "a: 007\n", "a: -1\n", "a: [b, [c]]\n", "a: {b: c}\n", "a:\n  b:\n    c: d\n", "a:\n  - b: c\n", "a: 1\na: 2\n",
		"a:\n  - b\n   c\n", "a:\n  - b\n - c\n", "a:b\n", " a: b\n", "a: \tb\n", "a: b\x00\n", "...\n", "a: b\n...\n", "- a\n", "text\n", "'a': b\n", "true: b\n",
	} {
		if fields, ok := readPlain(head, 2); ok {
			t.Errorf("the fast path takes %q as %v, which is for the library", head, fields)
		}
	}
}

// BenchmarkParse compares the cost of the fast path and of the library.
func BenchmarkParse(b *testing.B) {
	head := plainHeads[0]
	for name, read := range map[string]func() error{
		"plain": func() error {
			if _, ok := readPlain(head, 2); !ok {
				return fmt.Errorf("not plain: %s", head)
			}
			return nil
		},
		"yaml": func() error { _, err := readYAML(head, 2); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
