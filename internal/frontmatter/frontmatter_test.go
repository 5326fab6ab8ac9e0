package frontmatter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/frontmatter"
)

// show returns fields as one line, with the line numbers of their keys.
func show(fields []frontmatter.Field) string {
	var all []string
	for _, f := range fields {
		all = append(all, fmt.Sprintf("%d:%s=%s", f.Line, f.Key, value(f.Value)))
	}
	return strings.Join(all, " ")
}

func value(v frontmatter.Value) string {
	switch v.Kind {
	case frontmatter.Null:
		return "null"
	case frontmatter.String:
		return fmt.Sprintf("%q", v.Text)
	case frontmatter.List:
		var items []string
		for _, item := range v.List {
			items = append(items, value(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	case frontmatter.Map:
		return "{" + show(v.Map) + "}"
	default:
		return v.Text
	}
}

// SPEC K-06, K-07
func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, text string
		want, body string
		line       int // line of the body
		notes      []string
	}{
		{"no frontmatter", "# Title\n", "", "# Title\n", 1, nil},
		{"nothing at all", "", "", "", 1, nil},
		{"an empty mapping", "---\n---\nBody.\n", "", "Body.\n", 3, nil},
		{"comments alone", "---\n# nothing\n---\nBody.\n", "", "Body.\n", 4, nil},
		{"plain values", "---\nname: x\ndescription: Does it.\n---\nBody.\n", `2:name="x" 3:description="Does it."`, "Body.\n", 5, nil},
		{"the end of the file closes the last line", "---\nname: x\n---", `2:name="x"`, "", 4, nil},
		{"lines of another system", "---\r\nname: x\r\ntags:\r\n  - a\r\n---\r\nBody.\r\n", `2:name="x" 3:tags=["a"]`, "Body.\r\n", 6, nil},
		{"spaces behind the fence", "--- \t\nname: x\n---  \nBody.", `2:name="x"`, "Body.", 4, nil},
		{"a fence within the body", "---\nname: x\n---\na\n---\nb\n", `2:name="x"`, "a\n---\nb\n", 4, nil},
		{"a longer line of hyphens is no fence", "---\nname: x\n----: z\n---\n", `2:name="x" 3:----="z"`, "", 5, nil},
		{"quoted values", "---\nname: 'it''s'\ndescription: \"a: \\\"b\\\"\\n\"\n---\n", `2:name="it's" 3:description="a: \"b\"\n"`, "", 5, nil},
		{"a folded block", "---\nname: x\ndescription: >\n  one\n  two\n\n  three\nlicense: MIT\n---\n", `2:name="x" 3:description="one two\nthree\n" 8:license="MIT"`, "", 10, nil},
		{"a literal block", "---\ndescription: |-\n  one: two\n  three\n---\n", `2:description="one: two\nthree"`, "", 6, nil},
		{"a literal block with the lines of another system", "---\r\ndescription: |\r\n  one\r\n  two\r\n---\r\n", `2:description="one\ntwo\n"`, "", 6, nil},
		{"a value that goes on below", "---\ndescription: one\n  two\n---\n", `2:description="one two"`, "", 5, nil},
		{"numbers, and what is neither text nor number", "---\na: 10\nb: 1.5\nc: true\nd: null\ne:\nf: 0x1f\n---\n", "2:a=10 3:b=1.5 4:c=true 5:d=null 6:e=null 7:f=0x1f", "", 9, nil},
		{"lists and mappings", "---\na:\n  - type: regex\n    pattern: x\n  - z\nb: {c: [d]}\n---\n", `2:a=[{3:type="regex" 4:pattern="x"} "z"] 6:b={6:c=["d"]}`, "", 8, nil},
		{"a key that is no text is read as it is written", "---\n1: a\ntrue: b\n---\n", `2:1="a" 3:true="b"`, "", 5, nil},
		{"a byte order mark is tolerated", "\ufeff---\nname: x\n---\nBody.", `2:name="x"`, "Body.", 4, []string{"1: the file begins with a byte order mark"}},
		{
			"a colon in a value is tolerated", "---\nname: x\ndescription: Use when: \"never\" \\ x\nlicense: a: b:\n---\n",
			`2:name="x" 3:description="Use when: \"never\" \\ x" 4:license="a: b:"`, "", 6,
			[]string{"3: a value with a colon in it is not quoted", "4: a value with a colon in it is not quoted"},
		},
		{
			"a colon in a value that goes on below is tolerated", "---\ndescription: Use: this\n  or that\nname: x\n---\n",
			`2:description="Use: this or that" 4:name="x"`, "", 6,
			[]string{"2: a value with a colon in it is not quoted"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			d, err := frontmatter.Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(d.Fields); got != test.want {
				t.Errorf("fields = %s, want %s", got, test.want)
			}
			if d.Body != test.body || d.BodyLine != test.line {
				t.Errorf("body = %q on line %d, want %q on line %d", d.Body, d.BodyLine, test.body, test.line)
			}
			if len(d.Notes) != len(test.notes) {
				t.Fatalf("notes = %v, want %q", d.Notes, test.notes)
			}
			for i, note := range d.Notes {
				if got := fmt.Sprintf("%d: %s", note.Line, note.Message); !strings.HasPrefix(got, test.notes[i]) {
					t.Errorf("note %d = %q, want %q", i, got, test.notes[i])
				}
			}
		})
	}
}

// SPEC K-06
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20) + strings.Repeat("]", 20)
	for _, test := range []struct {
		rule, text string
		line       int
		want       string
	}{
		{"frontmatter that is never closed", "---\nname: x\n\nBody.\n", 1, "never closed"},
		{"a first line alone", "---", 1, "never closed"},
		{"a list in the place of a mapping", "---\n- a\n---\n", 2, "the YAML is a list: write a mapping"},
		{"a text in the place of a mapping", "---\njust text\n---\n", 2, "the YAML is a text: write a mapping"},
		{"a key given twice", "---\nname: x\na: b\nname: z\n---\n", 4, `the key "name" occurs twice`},
		{"a key given twice below another", "---\nm:\n  a: b\n  a: c\n---\n", 4, `the key "a" occurs twice`},
		{"a key given twice in braces", "---\nm: {a: b, a: c}\n---\n", 2, `the key "a" occurs twice`},
		{"a tab for indentation", "---\nname: x\ntags:\n\t- a\n---\n", 4, "tabs for indentation"},
		{"a tab in front of a key", "---\n\tname: x\n---\n", 2, "tabs for indentation"},
		{"a bracket that is never closed", "---\nname: x\ntags: [a\n---\n", 3, "not found"},
		{"a quote that is never closed", "---\nname: x\ndescription: \"a\n---\n", 3, "could not find end"},
		{"a byte that is no text", "---\nname: x\ndescription: \xff\n---\n", 3, "not UTF-8: it contains the byte 0xff"},
		{"a byte that is no text in the body", "---\nname: x\n---\na\nb\xfe\n", 5, "not UTF-8: it contains the byte 0xfe"},
		{"a byte that is no text without frontmatter", "a\nb\xfe\n", 2, "not UTF-8"},
		{"a control character", "---\nname: x\ndescription: a\x00b\n---\n", 3, "control character, U+0000"},
		{"an anchor", "---\na: &x b\n---\n", 2, "anchors and aliases"},
		{"an alias", "---\na: b\nc: *a\n---\n", 3, "anchors and aliases"},
		{"a merge key", "---\na: b\n<<: {c: d}\n---\n", 3, "merge key"},
		{"a tag", "---\na: !!str 5\n---\n", 2, "the tag !!str"},
		{"a key that is marked as one", "---\n? a\n: b\n---\n", 2, "not plain text"},
		{"a second document", "---\na: b\n...\nc: d\n---\n", 4, "second document"},
		{"what is nested too deep", "---\na: " + deep + "\n---\n", 2, "nested more than"},
		{"what is too long", "---\na: " + strings.Repeat("x", frontmatter.Limit) + "\n---\n", 2, "the limit is 65536"},
		{"what is 1 MiB", "---\n" + strings.Repeat("a: b\n", 1<<20/5) + "---\n", 2, "the limit is 65536"},
		{"a bomb of brackets", "---\na: " + strings.Repeat("[", 60_000) + "\n---\n", 2, "more than 4096"},
		{"a bomb of lists", "---\na:\n" + strings.Repeat("- ", 30_000) + "\n---\n", 2, "more than 4096"},
		{"a bomb of aliases", "---\na: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n---\n", 2, "anchors and aliases"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := frontmatter.Parse(test.text)
			problem, ok := errors.AsType[*frontmatter.Error](err)
			if !ok {
				t.Fatalf("error = %v, want an *Error", err)
			}
			if problem.Line != test.line || !strings.Contains(problem.Message, test.want) {
				t.Errorf("error = %v, want %q on line %d", problem, test.want, test.line)
			}
		})
	}
}

// SPEC K-06
func TestParseYAML(t *testing.T) {
	t.Parallel()
	d, err := frontmatter.ParseYAML("\ufeffname: x\nbody: |\n  one\n  two\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(d.Fields), `1:name="x" 2:body="one\ntwo\n"`; got != want || len(d.Notes) != 1 {
		t.Errorf("fields = %s with notes %v, want %s and one note", got, d.Notes, want)
	}
	if v := d.Field("body"); v == nil || v.Text != "one\ntwo\n" || d.Field("none") != nil {
		t.Errorf("the field body = %v, and none = %v", v, d.Field("none"))
	}
	if _, err := frontmatter.ParseYAML("name: x\nname: z\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error = %v, want one about line 2", err)
	}
}

// Parse returns for every input. Its errors name a line of the file.
func FuzzParse(f *testing.F) {
	f.Add("---\nname: x\ndescription: a: b\n---\nBody.")
	f.Add("---\na: >\n  b\nc: [d, {e: f}]\n---\n")
	f.Add("\ufeff---\r\na: &b c\r\n---\r\n")
	f.Add("---\n? a\n: b\n<<: *c\n---")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := frontmatter.Parse(text)
		lines := strings.Count(text, "\n") + 1
		if err != nil {
			problem, ok := errors.AsType[*frontmatter.Error](err)
			if !ok || problem.Line < 1 || problem.Line > lines {
				t.Fatalf("error = %#v, want one with a line of %d", err, lines)
			}
			return
		}
		if !strings.HasSuffix(text, d.Body) {
			t.Fatalf("body = %q is not the end of %q", d.Body, text)
		}
		var seen []string
		for _, field := range d.Fields {
			if slices.Contains(seen, field.Key) || field.Line < 1 || field.Line > lines {
				t.Fatalf("field %q on line %d of %d, behind %q", field.Key, field.Line, lines, seen)
			}
			seen = append(seen, field.Key)
		}
	})
}
