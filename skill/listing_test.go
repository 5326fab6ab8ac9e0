package skill_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/skill"
)

func listOf(skills ...skill.Skill) []*skill.Skill {
	var list []*skill.Skill
	for i := range skills {
		list = append(list, &skills[i])
	}
	return list
}

// SPEC K-04
func TestListing(t *testing.T) {
	t.Parallel()
	three := listOf(skill.Skill{Name: "a", Description: "First one."}, skill.Skill{Name: "b", Description: strings.Repeat("long ", 40)}, skill.Skill{Name: "c", Description: "Short."})
	for _, test := range []struct {
		rule   string
		skills []*skill.Skill
		budget int
		want   string
	}{
		{"none", nil, 100, "<available_skills>\n</available_skills>"},
		{
			"names and descriptions", listOf(skill.Skill{Name: "a", Description: "First."}, skill.Skill{Name: "b"}), 100,
			"<available_skills>\n<skill name=\"a\">First.</skill>\n<skill name=\"b\" />\n</available_skills>",
		},
		{
			"hidden ones are not in it", listOf(skill.Skill{Name: "a", Hidden: true, Description: "secret"}, skill.Skill{Name: "b"}), 100,
			"<available_skills>\n<skill name=\"b\" />\n</available_skills>",
		},
		{
			"escaped, and on one line", listOf(skill.Skill{Name: `a"<b>`, Description: "x < y\n& \"z\"\t</available_skills>"}), 100,
			"<available_skills>\n<skill name=\"a&#34;&lt;b&gt;\">x &lt; y &amp; &#34;z&#34; &lt;/available_skills&gt;</skill>\n</available_skills>",
		},
		{
			"descriptions while they fit, and then names", three, 36,
			"<available_skills>\n<skill name=\"a\">First one.</skill>\n<skill name=\"b\" />\n<skill name=\"c\" />\n</available_skills>",
		},
		{
			"no room for a description", three, 25,
			"<available_skills>\n<skill name=\"a\" />\n<skill name=\"b\" />\n<skill name=\"c\" />\n</available_skills>",
		},
		{
			"no room for all names", listOf(skill.Skill{Name: "aaaa"}, skill.Skill{Name: "bbbb"}, skill.Skill{Name: "cccc"}, skill.Skill{Name: "dddd"}), 23,
			"<available_skills>\n<skill name=\"aaaa\" />\n<!-- 3 more skills omitted -->\n</available_skills>",
		},
		{
			"a description that fits to the last character", listOf(skill.Skill{Name: "a", Description: "1234567890123"}), 19,
			"<available_skills>\n<skill name=\"a\">1234567890123</skill>\n</available_skills>",
		},
		{
			"and one that is one longer", listOf(skill.Skill{Name: "a", Description: "12345678901234"}), 19,
			"<available_skills>\n<skill name=\"a\" />\n</available_skills>",
		},
		{"no room at all", three, 1, "<available_skills>\n<!-- 3 more skills omitted -->\n</available_skills>"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got := skill.Listing(test.skills, test.budget); got != test.want {
				t.Errorf("listing = %s\nwant %s", got, test.want)
			}
		})
	}
	long := skill.Listing(listOf(skill.Skill{Name: "a", Description: strings.Repeat("ö", 5000)}), 2000)
	if n := strings.Count(long, "ö"); n != 1024 || !strings.Contains(long, "ö…</skill>") {
		t.Errorf("a description of 5,000 characters is listed with %d of them, want 1,024 and a sign that there were more", n)
	}
}

// SPEC K-04
func TestListingKeepsItsBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		skills := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) skill.Skill {
			return skill.Skill{
				Name: rapid.StringMatching(`[a-zö<"]{1,20}`).Draw(t, "name"), Description: rapid.StringMatching(`[a-zö<& \n]{0,80}`).Draw(t, "description"), Hidden: rapid.IntRange(0, 4).Draw(t, "hidden") == 0,
			}
		}), 0, 30).Draw(t, "skills")
		for i := range skills {
			skills[i].Name += fmt.Sprintf("-%d", i)
		}
		budget := rapid.IntRange(0, 800).Draw(t, "budget")
		got := skill.Listing(listOf(skills...), budget)
		visible := 0
		for i := range skills {
			if !skills[i].Hidden {
				visible++
			} else if strings.Contains(got, fmt.Sprintf("-%d\"", i)) {
				t.Fatalf("the hidden skill %q is listed:\n%s", skills[i].Name, got)
			}
		}
		omitted := 0
		if at := strings.Index(got, "<!-- "); at >= 0 {
			if _, err := fmt.Sscanf(got[at:], "<!-- %d more skills omitted -->", &omitted); err != nil {
				t.Fatalf("the comment cannot be read: %v\n%s", err, got)
			}
		}
		if listed := strings.Count(got, "<skill name="); listed+omitted != visible {
			t.Fatalf("%d are listed and %d omitted of %d:\n%s", listed, omitted, visible, got)
		} else if size := utf8.RuneCountInString(got); size > 4*budget && listed > 0 {
			t.Fatalf("the listing has %d characters, more than %d:\n%s", size, 4*budget, got)
		}
		if described := strings.Count(got, "</skill>"); described > 0 && omitted > 0 {
			t.Fatalf("%d are described though %d are not even named:\n%s", described, omitted, got)
		}
		full := strings.LastIndex(got, "</skill>")
		for rest := got; full >= 0; { // all descriptions that fit come before entries without one
			at := strings.Index(rest, " />")
			if at < 0 || len(got)-len(rest)+at > full {
				break
			}
			name := rest[strings.LastIndex(rest[:at], `-`)+1 : at-1]
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || strings.TrimSpace(skills[i].Description) != "" {
				t.Fatalf("%q has a description that comes after others:\n%s", name, got)
			}
			rest = rest[at+3:]
		}
	})
}

// BenchmarkListing measures the listing of 10,000 skills.
func BenchmarkListing(b *testing.B) {
	skills := skill.NewCatalog(b.Context(), skill.Values(manySkills(10_000)...)).List()
	b.ReportAllocs()
	for b.Loop() {
		skill.Listing(skills, skill.DefaultBudget)
	}
}
