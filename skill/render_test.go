package skill_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/skill"
)

// SPEC K-05, K-14
func TestElement(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		read skill.Reading
		want string
	}{
		{"a body", skill.Reading{Name: "a", Text: "Do it."}, "<skill name=\"a\">\n<content>\nDo it.\n</content>\n</skill>"},
		{
			"everything",
			skill.Reading{Name: "a", Path: "/srv/skills/a", Section: "b", Text: "Do it.", Sections: []string{"b", "c"}, Resources: []string{"scripts/x.py"}},
			"<skill name=\"a\" path=\"/srv/skills/a\" section=\"b\">\n<content>\nDo it.\n</content>\n<sections>b,c</sections>\n<resources>scripts/x.py</resources>\n</skill>",
		},
		{
			"attributes and names are escaped",
			skill.Reading{Name: `a"><x y="`, Path: "a&b", Section: "<", Text: "x", Sections: []string{"a,b", "</sections>"}},
			"<skill name=\"a&#34;&gt;&lt;x y=&#34;\" path=\"a&amp;b\" section=\"&lt;\">\n<content>\nx\n</content>\n<sections>a&#44;b,&lt;/sections&gt;</sections>\n</skill>",
		},
		{
			"a body cannot end the element",
			skill.Reading{Name: "a", Text: "x</content></skill>\n</ CONTENT >< / Skill\n>y <skill> a </b>"},
			"<skill name=\"a\">\n<content>\nx<\\/content><\\/skill>\n<\\/ CONTENT >< \\/ Skill\n>y <skill> a </b>\n</content>\n</skill>",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got := test.read.Element(); got != test.want {
				t.Errorf("element = %s\nwant %s", got, test.want)
			}
		})
	}
}

// ends matches an end tag, with all white space that a lenient parser could skip.
var ends = regexp.MustCompile(`(?i)<\s*/\s*(content|skill)\b`)

// SPEC K-05
func FuzzElement(f *testing.F) {
	f.Add("a", "b", "text </content>")
	f.Add("a\"", "</skill>", "<\n/content")
	f.Add("<", ">", "<</content</content>")
	f.Fuzz(func(t *testing.T, name, section, text string) {
		r := skill.Reading{Name: name, Section: section, Text: text, Sections: []string{section}}
		want := []string{"</content", "</skill"}
		if got := ends.FindAllString(r.Element(), -1); !slices.Equal(got, want) {
			t.Fatalf("the element ends %q times:\n%s", got, r.Element())
		}
		half := len(text) / 2
		var whole strings.Builder
		for _, p := range r.Message(belay.Text(text[:half]), belay.Text(text[half:]), belay.Image("image/png", []byte{1}), belay.Text(text)).Parts {
			whole.WriteString(p.Text)
		}
		if got := ends.FindAllString(whole.String(), -1); !slices.Equal(got, want) {
			t.Fatalf("the message ends %q times:\n%s", got, whole.String())
		}
	})
}

// SPEC K-02, K-13, K-14
func TestMessage(t *testing.T) {
	t.Parallel()
	image := belay.Image("image/png", []byte{1})
	r := skill.Reading{Name: "a", Text: "Do it.", Sections: []string{"b"}}
	const open, shut = "<skill name=\"a\">\n<content>\n", "\n</content>\n<sections>b</sections>\n</skill>"
	for _, test := range []struct {
		rule  string
		parts []belay.Part
		want  []belay.Part
	}{
		{"what was read", nil, []belay.Part{belay.Text(open + "Do it." + shut)}},
		{"a text", []belay.Part{belay.Text("x </content>")}, []belay.Part{belay.Text(open + "x <\\/content>" + shut)}},
		{"texts next to each other are one", []belay.Part{belay.Text("x"), belay.Text("y")}, []belay.Part{belay.Text(open + "x\ny" + shut)}},
		{"parts keep their order", []belay.Part{belay.Text("x"), image, belay.Text("y")}, []belay.Part{belay.Text(open + "x"), image, belay.Text("y" + shut)}},
		{"an image alone", []belay.Part{image}, []belay.Part{belay.Text(open), image, belay.Text(shut[1:])}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got := r.Message(test.parts...)
			if diff := cmp.Diff(test.want, got.Parts); diff != "" || !got.IsSkillInjection {
				t.Errorf("marked %t (-want +got):\n%s", got.IsSkillInjection, diff)
			}
		})
	}
}

// SPEC D-01, K-14
func TestTokensAreThoseOfTheScanner(t *testing.T) {
	t.Parallel()
	text := "/a and /usr/bin, then /b"
	got := skill.Tokens(text)
	if len(got) != 2 || got[0].Name != "a" || text[got[1].Start:got[1].End] != "/b" {
		t.Errorf("Tokens(%q) = %v", text, got)
	}
}

// SPEC K-09
func TestVariables(t *testing.T) {
	t.Parallel()
	v := skill.Variables{ProjectName: "app", ProjectPath: "/srv/app", Language: "Go", Framework: "chi", AgentID: "main", Mode: "build", Task: "say {{mode}}"}
	for _, test := range []struct{ rule, template, want string }{
		{"each of them", "{{project_name}} {{project_path}} {{language}} {{framework}} {{agent_id}} {{mode}}", "app /srv/app Go chi main build"},
		{"spaces within", "{{ language }}{{\tmode }}", "Gobuild"},
		{"values are not looked at again", "{{task}}{{mode}}", "say {{mode}}build"},
		{"unknown ones stay", "{{other}} {{Language}} {{ x.y }} {{}} {{ }} {{1}}", "{{other}} {{Language}} {{ x.y }} {{}} {{ }} {{1}}"},
		{"what is no variable stays", "{ {language}} {{language} } {{language", "{ {language}} {{language} } {{language"},
		{"a line's end is no space here", "{{\nlanguage}}", "{{\nlanguage}}"},
		{"braces around", "{{{language}}} ${{ language }}", "{Go} $Go"},
		{"braces that open twice", "{{a {{language}}", "{{a Go"},
		{"nothing", "", ""},
	} {
		if got := v.Expand(test.template); got != test.want {
			t.Errorf("%s: Expand(%q) = %q, want %q", test.rule, test.template, got, test.want)
		}
	}
	if got := (skill.Variables{}).Expand("[{{language}}]"); got != "[]" {
		t.Errorf("a variable without a value is %q, want nothing", got)
	}
}
