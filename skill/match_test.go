package skill_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/skill"
)

// naive is a simple reference for Match: it tries every trigger.
type naive []struct {
	id       string
	priority int
	triggers []*regexp.Regexp
}

func newNaive(skills []skill.Skill) naive {
	all := make(naive, len(skills))
	for i, s := range skills {
		all[i].id, all[i].priority = s.Name, s.Priority
		for _, t := range s.Triggers {
			pattern := t.Pattern
			if t.Type != skill.Regex {
				pattern = regexp.QuoteMeta(pattern)
			}
			all[i].triggers = append(all[i].triggers, regexp.MustCompile("(?i)"+pattern))
		}
	}
	slices.SortFunc(all, func(a, b struct {
		id       string
		priority int
		triggers []*regexp.Regexp
	},
	) int {
		if a.priority != b.priority {
			return b.priority - a.priority
		}
		return strings.Compare(a.id, b.id)
	})
	return all
}

func (n naive) match(task string) []string {
	var ids []string
	for _, s := range n {
		if slices.ContainsFunc(s.triggers, func(re *regexp.Regexp) bool { return re.MatchString(task) }) {
			ids = append(ids, s.id)
		}
	}
	return ids
}

func ids(matches []skill.Match) []string {
	var all []string
	for _, m := range matches {
		all = append(all, m.Skill.ID)
	}
	return all
}

// pieces are parts of expressions: literals with unusual case rules, classes, choices,
// optional parts, repetitions and anchors.
var pieces = []string{
	"deploy", "test", "k", "K", "\u212a", "s", "ſ", "S", "ß", "ẞ", "ss", "i", "I", "İ", "ı", "σ", "ς", "Σ", "å", "\u212b", "日本", "é", "go", "a", "b", " ", "x1",
	"[ab]", "[a-z]", "[^a]", "[kK]", "[sſ]", "[Σσ]", "gr[ae]y", `\d`, `\w+`, `\s`, `\b`, `\B`, "^", "$", ".", ".*", ".+?", "a?", "(?:ab)?", "a*", "(go)+", "a{2}", "b{1,3}", "(?:x|y)", "(?:foo|bar|baz)",
	"(?:deploy|release) to (?:prod|staging)", "colou?r", "(?-i)Go", "(?-i:K)s", "(?i:s)", `\x{212A}`, `\x{17F}t`, `\Qa.b\E`, "(?:|a)", "(?:a|)", "()", `\pL`, `\p{Greek}`, "[[:alpha:]]", "(?s).", "(?m)^a$", "[aA]b", "(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r)z",
	`(?:go.*x|\d)`, `(?:deploy\w+|.)`, `(?:test.+|a*)`, `(?:foo\w|bar\w)`,
}

// SPEC K-08, K-11
func TestMatchIsTheSetOfTheNaiveLoop(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom(pieces)
	hits := 0
	rapid.Check(t, func(t *rapid.T) {
		skills := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) skill.Skill {
			s := skill.Skill{Priority: rapid.IntRange(0, 2).Draw(t, "priority"), Body: "x"}
			for range rapid.IntRange(1, 3).Draw(t, "triggers") {
				pattern := strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces"), "")
				trigger := skill.Trigger{Type: skill.Regex, Pattern: pattern}
				if _, err := regexp.Compile("(?i)" + pattern); err != nil || strings.TrimSpace(pattern) == "" || rapid.Bool().Draw(t, "keyword") {
					trigger = skill.Trigger{Type: skill.Keyword, Pattern: "k" + pattern}
					if rapid.Bool().Draw(t, "bare") {
						trigger.Pattern = rapid.SampledFrom(pieces[:26]).Draw(t, "keyword") + "a"
					}
				}
				s.Triggers = append(s.Triggers, trigger)
			}
			return s
		}), 1, 8).Draw(t, "skills")
		for i := range skills {
			skills[i].Name = fmt.Sprintf("s%d", i)
		}
		catalog := skill.NewCatalog(t.Context(), skill.Values(skills...))
		if problems := catalog.Problems(); len(problems) > 0 {
			t.Fatalf("problems: %v", problems)
		}
		reference := newNaive(skills)
		for range 4 {
			task := strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(pieces[:26:26], "gray", "aa", "bbb", "foo", "Deploy to PROD", "color", "COLOUR", "Go", "KS", "az", "a.b", "\n", "\xff", "", "ab")), 0, 6).Draw(t, "task"), "")
			got, want := ids(catalog.Match(task, "main")), reference.match(task)
			if !slices.Equal(got, want) {
				t.Fatalf("Match(%q) = %q, want %q of %+v", task, got, want, skills)
			}
			hits += len(got)
		}
	})
	if hits == 0 {
		t.Error("nothing ever matched: the property says nothing")
	}
}

func FuzzMatch(f *testing.F) {
	for i, piece := range pieces {
		f.Add(piece, pieces[(i*7+3)%len(pieces)], "Deploy to prod: gray "+piece)
	}
	f.Fuzz(func(t *testing.T, pattern, keyword, task string) {
		s := skill.Skill{Name: "s", Body: "x", Triggers: []skill.Trigger{{Type: skill.Regex, Pattern: pattern}, {Pattern: keyword}}}
		catalog := skill.NewCatalog(t.Context(), skill.Values(s))
		if len(catalog.List()) == 0 || strings.Contains(keyword, "\ufffd") {
			return // the skill was rejected, or invalid UTF-8 makes the result ambiguous
		}
		if got, want := ids(catalog.Match(task, "main")), newNaive([]skill.Skill{s}).match(task); !slices.Equal(got, want) {
			t.Fatalf("Match(%q) = %q, want %q of %q and %q", task, got, want, pattern, keyword)
		}
	})
}

// SPEC K-08
func TestMatch(t *testing.T) {
	t.Parallel()
	catalog := skill.NewCatalog(t.Context(), skill.Values(
		skill.Skill{Name: "review", Body: "x", Priority: 5, Triggers: []skill.Trigger{{Type: skill.Regex, Pattern: `review (the|my) \w+`}, {Pattern: "Pull Request"}}},
		skill.Skill{Name: "cased", Body: "x", Triggers: []skill.Trigger{{Type: skill.Regex, Pattern: `(?-i)\bGo\b`}}},
		skill.Skill{Name: "also", ID: "z/also.v1", Body: "x", Triggers: []skill.Trigger{{Pattern: "go"}}},
		skill.Skill{Name: "kelvin", Body: "x", Triggers: []skill.Trigger{{Pattern: "kelvins"}}},
		skill.Skill{Name: "turkish", Body: "x", Triggers: []skill.Trigger{{Pattern: "istanbul"}}},
		skill.Skill{Name: "only", Body: "x", Agents: []string{"reviewer"}, Triggers: []skill.Trigger{{Pattern: "go"}}},
		skill.Skill{Name: "plain", Body: "x"},
		skill.Skill{Name: "plain-2", Body: "x"},
	))
	for _, test := range []struct {
		rule, task, agent string
		want              []string // name: found
	}{
		{"nothing matches", "tidy the changelog", "main", nil},
		{"no task", "", "main", nil},
		{"an expression, whatever the case", "please REVIEW my Change", "main", []string{"review: REVIEW my Change"}},
		{"a keyword, whatever the case", "look at this pull request", "main", []string{"review: pull request"}},
		{"the first trigger that matches is told", "pull request: review the diff", "main", []string{"review: review the diff"}},
		{"an expression that says that case counts", "a Go program", "main", []string{"cased: Go", "also: Go"}},
		{"and where it does not match", "go on", "main", []string{"also: go"}},
		{"the Kelvin sign and the long s are letters in another case", "two \u212aelvinſ", "main", []string{"kelvin: \u212aelvinſ"}},
		{"the dotted I of Turkish is another letter", "İstanbul", "main", nil},
		{"and so is the dotless i", "ıstanbul", "main", nil},
		{"a skill that is for another agent", "go on", "reviewer", []string{"only: go", "also: go"}},
		{"an id in the text", "do it with skill:plain now", "main", []string{"plain: skill:plain"}},
		{"an id at the end of a sentence", "Use skill:plain.", "main", []string{"plain: skill:plain"}},
		{"an id in parentheses", "(skill:plain)", "main", []string{"plain: skill:plain"}},
		{"an id goes as far as it can", "skill:plain-2", "main", []string{"plain-2: skill:plain-2"}},
		{"an id with signs in it", "skill:z/also.v1", "main", []string{"also: skill:z/also.v1"}},
		{"the case of an id counts", "skill:Plain", "main", nil},
		{"a longer id is another id", "skill:plainer", "main", nil},
		{"the end of another word", "myskill:plain", "main", nil},
		{"an id of another agent's skill", "skill:only", "main", nil},
		{"higher priority first, then by id", "review my Go", "main", []string{"review: review my Go", "cased: Go", "also: Go"}},
		{"an id tells more than a trigger", "review my skill:review", "main", []string{"review: skill:review"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range catalog.Match(test.task, test.agent) {
				got = append(got, m.Skill.Name+": "+m.Found)
				if named := strings.HasPrefix(m.Found, "skill:"); named != (m.Trigger.Pattern == "") {
					t.Errorf("%s was found by %q as %q", m.Skill.Name, m.Trigger.Pattern, m.Found)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("Match(%q) = %q, want %q", test.task, got, test.want)
			}
		})
	}
}

// SPEC K-06, K-08
func TestTriggersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		trigger skill.Trigger
		want    string
	}{
		{"an expression that does not compile", skill.Trigger{Type: skill.Regex, Pattern: "(a"}, "missing closing )"},
		{"look-ahead", skill.Trigger{Type: skill.Regex, Pattern: "a(?=b)"}, "RE2 does not support look-ahead"},
		{"negative look-ahead", skill.Trigger{Type: skill.Regex, Pattern: "a(?!b)"}, "RE2 does not support negative look-ahead"},
		{"look-behind", skill.Trigger{Type: skill.Regex, Pattern: "(?<=a)b"}, "RE2 does not support look-behind"},
		{"a back-reference", skill.Trigger{Type: skill.Regex, Pattern: `(a)\1`}, "RE2 has no back-references"},
		{"an expression that would be too large", skill.Trigger{Type: skill.Regex, Pattern: "((a{100}){100}){100}"}, "cannot be read"},
		{"no pattern", skill.Trigger{}, "would match every task"},
		{"a pattern of spaces", skill.Trigger{Pattern: "  "}, "would match every task"},
		{"a pattern that is too long", skill.Trigger{Pattern: strings.Repeat("a", 5000)}, "at most 4096"},
		{"a pattern that is no text", skill.Trigger{Pattern: "\xff"}, "not UTF-8"},
		{"an unknown type", skill.Trigger{Type: "regexp", Pattern: "a"}, `did you mean "regex"?`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			catalog := skill.NewCatalog(t.Context(), skill.Values(
				skill.Skill{Name: "broken", Body: "x", Triggers: []skill.Trigger{test.trigger}}, skill.Skill{Name: "sound", Body: "x", Triggers: []skill.Trigger{{Pattern: "task"}}}))
			problems := catalog.Problems()
			if len(problems) != 1 || problems[0].Kind != skill.NotLoaded || !strings.Contains(problems[0].Error(), test.want) {
				t.Errorf("problems = %v, want one with %q", problems, test.want)
			}
			if got := ids(catalog.Match("a task", "main")); !slices.Equal(got, []string{"sound"}) {
				t.Errorf("the others match %q, want sound", got)
			}
		})
	}
}

// manySkills returns skills with two typical regular expressions each.
func manySkills(n int) []skill.Skill {
	random := rand.New(rand.NewPCG(1, 2))
	syllables := []string{"ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"}
	word := func() string {
		var b strings.Builder
		for range 3 + random.IntN(2) {
			b.WriteString(syllables[random.IntN(len(syllables))])
		}
		return b.String()
	}
	skills := make([]skill.Skill, n)
	for i := range skills {
		skills[i] = skill.Skill{
			Name: fmt.Sprintf("skill-%05d", i), Description: "Helps with " + word() + " and " + word() + ". Use it when somebody asks about them.", Body: "Do it well.",
			Triggers: []skill.Trigger{
				{Type: skill.Regex, Pattern: fmt.Sprintf(`\b(?:deploy|release|roll out)\s+(?:the\s+)?%s(?:-?%s)?\b`, word(), word())},
				{Type: skill.Regex, Pattern: fmt.Sprintf(`%s\s+.*(?:error|fails|%s)`, word(), word())},
			},
		}
	}
	return skills
}

const longTask = `I would like you to look at the payment service, which has been slow since yesterday. The dashboards show that most of the time goes into
the data base, and the logs say that some requests fail after thirty seconds. Please find out which query it is, write down what you see, and propose
a change that we can roll out tomorrow. Do not touch the configuration of the load balancer, and keep the tests as they are. Thanks a lot!`

// SPEC K-11
func TestMatchOfManySkillsIsThatOfTheNaiveLoop(t *testing.T) {
	t.Parallel()
	skills := manySkills(200)
	catalog, reference := skill.NewCatalog(t.Context(), skill.Values(skills...)), newNaive(skills)
	hits := 0
	for i := range 5 {
		// Use words of some triggers, so that some tasks pass the filter.
		pattern := skills[i*37].Triggers[1].Pattern
		word, _, _ := strings.Cut(pattern, `\`)
		for _, task := range []string{longTask, longTask + " " + strings.ToUpper(word) + " error", "release the " + word} {
			got, want := ids(catalog.Match(task, "main")), reference.match(task)
			if !slices.Equal(got, want) {
				t.Fatalf("Match(%q) = %q, want %q", task, got, want)
			}
			hits += len(got)
		}
	}
	if hits == 0 {
		t.Error("nothing ever matched")
	}
}

// SPEC K-11
func TestNoMatchCostsNoAllocation(t *testing.T) { //nolint:paralleltest // it counts allocations
	catalog := skill.NewCatalog(t.Context(), skill.Values(manySkills(300)...))
	if got := catalog.Match(longTask, "main"); got != nil {
		t.Fatalf("something matches: %v", ids(got))
	}
	if n := testing.AllocsPerRun(100, func() { catalog.Match(longTask, "main") }); n > 0 {
		t.Errorf("a task that matches nothing costs %v allocations, want none", n)
	}
}

// BenchmarkMatch measures matching a task of 400 bytes with 10,000 skills, which have two
// expressions each. For comparison, it also measures the naive loop.
func BenchmarkMatch(b *testing.B) {
	skills := manySkills(10_000)
	catalog := skill.NewCatalog(b.Context(), skill.Values(skills...))
	task := longTask[:400]
	catalog.Match(task, "main")
	b.Run("catalog", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			catalog.Match(task, "main")
		}
	})
	b.Run("naive", func(b *testing.B) {
		reference := newNaive(skills)
		b.ResetTimer()
		for b.Loop() {
			reference.match(task)
		}
	})
}
