package looptest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// planned dispatches to hooks that give these answers in plan order, with the given limits.
func planned[In any, Out hook.Output](t testing.TB, p hook.Phase[In, Out], limits hook.Limits, in In, answers ...Out) hook.Outcome[In, Out] {
	t.Helper()
	var subs []hook.Subscription
	for i, answer := range answers {
		subs = append(subs, p.On(fmt.Sprintf("hook-%02d", i), answering(p, answer), nil))
	}
	slices.Reverse(subs) // the order of installation must not matter
	outcome, err := p.Dispatch(context.Background(), snapshotOf(t, &hook.RuntimeOptions{Limits: limits}, subs...), in)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// mergeContext merges the context entries of several hooks.
func mergeContext(t testing.TB, limits hook.Limits, hooks ...[]string) ([]belay.ContextEntry, []codes.Code) {
	t.Helper()
	var answers []belay.PromptContext
	for _, texts := range hooks {
		var answer belay.PromptContext
		for i, text := range texts {
			answer.Entries = append(answer.Entries, belay.ContextEntry{ID: fmt.Sprint(i), Text: text, From: "an impostor"})
		}
		answers = append(answers, answer)
	}
	o := planned(t, belay.TurnPrePromptContext, limits, inputOf(t, belay.TurnPrePromptContext, `{"text": ""}`), answers...)
	return o.Output.Entries, codesOf(o.Diagnostics)
}

// SPEC H-17
func TestPromptContextLimits(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"fact"}, 16)
	for _, test := range []struct {
		rule   string
		limits hook.Limits
		hooks  [][]string
		want   []int // the sizes of the merged entries in characters
		codes  []codes.Code
	}{
		{"16 entries stay", hook.Limits{}, [][]string{many}, slices.Repeat([]int{4}, 16), nil},
		{"the 17th entry is left out", hook.Limits{}, [][]string{many[:10], many[:7]}, slices.Repeat([]int{4}, 16), []codes.Code{codes.ContextDropped}},
		{"12,000 characters stay", hook.Limits{}, [][]string{{strings.Repeat("a", 12_000)}}, []int{12_000}, nil},
		{"characters are code points", hook.Limits{}, [][]string{{strings.Repeat("語", 12_000)}}, []int{12_000}, nil},
		{"the 12,001st character is cut", hook.Limits{}, [][]string{{strings.Repeat("é", 12_001)}}, []int{12_000}, []codes.Code{codes.ContextTruncated}},
		{"the characters of all entries count", hook.Limits{}, [][]string{{strings.Repeat("語", 7_000)}, {strings.Repeat("🦀", 7_000)}, {"x"}}, []int{7_000, 5_000}, []codes.Code{codes.ContextTruncated, codes.ContextDropped}},
		{"the number of entries is a setting", hook.Limits{ContextEntries: 2}, [][]string{{"a", "b", "c"}}, []int{1, 1}, []codes.Code{codes.ContextDropped}},
		{"the number of characters is a setting", hook.Limits{ContextCharacters: 3}, [][]string{{"ééééé"}}, []int{3}, []codes.Code{codes.ContextTruncated}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			entries, diagnosed := mergeContext(t, test.limits, test.hooks...)
			var sizes []int
			for _, e := range entries {
				sizes = append(sizes, utf8.RuneCountInString(e.Text))
				if !utf8.ValidString(e.Text) {
					t.Error("a character was cut in two")
				}
			}
			if diff := cmp.Diff(test.want, sizes); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
			if !slices.Equal(diagnosed, test.codes) {
				t.Errorf("diagnostics %v, want %v", diagnosed, test.codes)
			}
		})
	}
}

// SPEC H-17
func TestPromptContextMatchesReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		limits := hook.Limits{
			ContextEntries:    rapid.IntRange(1, 5).Draw(r, "entries"),
			ContextCharacters: rapid.IntRange(1, 12).Draw(r, "characters"),
		}
		hooks := rapid.SliceOfN(rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("aé語🦀\n")), 0, 6, -1), 0, 3), 0, 4).Draw(r, "hooks")
		var want []belay.ContextEntry
		var problems []codes.Code
		used := 0
		for i, texts := range hooks {
			for j, text := range texts {
				entry := belay.ContextEntry{ID: fmt.Sprint(j), From: fmt.Sprintf("hook-%02d", i)}
				if len(want) == limits.ContextEntries || used == limits.ContextCharacters {
					problems = append(problems, codes.ContextDropped)
					continue
				}
				cut := false
				for _, c := range text { // one character at a time
					if used < limits.ContextCharacters {
						entry.Text += string(c)
						used++
					} else {
						cut = true
					}
				}
				if cut {
					problems = append(problems, codes.ContextTruncated)
				}
				want = append(want, entry)
			}
		}
		got, diagnosed := mergeContext(t, limits, hooks...)
		if diff := cmp.Diff(want, got); diff != "" {
			r.Errorf("merged (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(problems, diagnosed); diff != "" {
			r.Errorf("diagnostics (-want +got):\n%s", diff)
		}
	})
}

// mergeSections merges the sections of several hooks.
func mergeSections(t testing.TB, limits hook.Limits, hooks ...[]belay.PromptSection) ([]belay.PromptSection, []codes.Code) {
	t.Helper()
	var answers []belay.PromptSections
	for _, sections := range hooks {
		answers = append(answers, belay.PromptSections{Sections: sections})
	}
	o := planned(t, belay.TurnPrePromptCompile, limits, inputOf(t, belay.TurnPrePromptCompile, `{"text": ""}`), answers...)
	return o.Output.Sections, codesOf(o.Diagnostics)
}

// SPEC H-17
func TestPromptSectionsMerge(t *testing.T) {
	t.Parallel()
	type sections = []belay.PromptSection
	from := func(ids ...string) []string { return ids }
	for _, test := range []struct {
		rule  string
		hooks []sections
		want  sections
		codes []codes.Code
	}{
		{
			"their own order counts, then plan order",
			[]sections{{{ID: "c", Body: "c", Order: 1}, {ID: "a", Body: "a"}}, {{ID: "d", Body: "d", Order: -1}, {ID: "b", Body: "b"}}},
			sections{{ID: "d", Body: "d", Order: -1, From: from("hook-01")}, {ID: "a", Body: "a", From: from("hook-00")}, {ID: "b", Body: "b", From: from("hook-01")}, {ID: "c", Body: "c", Order: 1, From: from("hook-00")}},
			nil,
		},
		{
			"the same id is joined by a blank line, the first title wins",
			[]sections{{{ID: "a", Title: "First", Body: "one"}}, {{ID: "a", Title: "Second", Body: "two", Order: 9}}, {{ID: "a", Body: "three"}}},
			sections{{ID: "a", Title: "First", Body: "one\n\ntwo\n\nthree", From: from("hook-00", "hook-01", "hook-02")}},
			nil,
		},
		{
			"the first title wins even if the first section has none",
			[]sections{{{ID: "a", Body: "one"}, {ID: "a", Title: "Title", Body: "two"}}},
			sections{{ID: "a", Title: "Title", Body: "one\n\ntwo", From: from("hook-00")}},
			nil,
		},
		{
			"what is empty is joined without a blank line",
			[]sections{{{ID: "a"}}, {{ID: "a", Body: "one"}}, {{ID: "a"}}},
			sections{{ID: "a", Body: "one", From: from("hook-00", "hook-01", "hook-02")}},
			nil,
		},
		{
			"each keeps to its own budget",
			[]sections{{{ID: "a", Body: "ééééé", Budget: 3}, {ID: "b", Body: "bbbbb"}}},
			sections{{ID: "a", Body: "ééé", Budget: 3, From: from("hook-00")}, {ID: "b", Body: "bbbbb", From: from("hook-00")}},
			[]codes.Code{codes.SectionTruncated},
		},
		{
			"one that is joined keeps to its own budget too",
			[]sections{{{ID: "a", Body: "aaaaa"}}, {{ID: "a", Body: "bbbbb", Budget: 2}}},
			sections{{ID: "a", Body: "aaaaa\n\nbb", From: from("hook-00", "hook-01")}},
			[]codes.Code{codes.SectionTruncated},
		},
		{
			"and to the budget of the first",
			[]sections{{{ID: "a", Body: "aaa", Budget: 7}}, {{ID: "a", Body: "bbb"}}, {{ID: "a", Body: "c"}}},
			sections{{ID: "a", Body: "aaa\n\nbb", Budget: 7, From: from("hook-00", "hook-01", "hook-02")}},
			[]codes.Code{codes.SectionTruncated, codes.SectionTruncated},
		},
		{
			"a blank line with nothing behind it is left out",
			[]sections{{{ID: "a", Body: "aaa", Budget: 5}}, {{ID: "a", Body: "bbb"}}},
			sections{{ID: "a", Body: "aaa", Budget: 5, From: from("hook-00", "hook-01")}},
			[]codes.Code{codes.SectionTruncated},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got, diagnosed := mergeSections(t, hook.Limits{}, test.hooks...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			if !slices.Equal(diagnosed, test.codes) {
				t.Errorf("diagnostics %v, want %v", diagnosed, test.codes)
			}
		})
	}
}

// SPEC H-17
func TestPromptSectionLimits(t *testing.T) {
	t.Parallel()
	some := func(n, size int) []belay.PromptSection {
		var sections []belay.PromptSection
		for i := range n {
			sections = append(sections, belay.PromptSection{ID: fmt.Sprint("s", i), Body: strings.Repeat("語", size)})
		}
		return sections
	}
	for _, test := range []struct {
		rule     string
		limits   hook.Limits
		sections []belay.PromptSection
		want     []int // the sizes of the merged sections in characters
		codes    []codes.Code
	}{
		{"16 sections stay", hook.Limits{}, some(16, 10), slices.Repeat([]int{10}, 16), nil},
		{"the 17th is left out", hook.Limits{}, some(17, 10), slices.Repeat([]int{10}, 16), []codes.Code{codes.SectionDropped}},
		{"the 17th is joined if its id is there", hook.Limits{}, append(some(16, 10), some(1, 10)...), append([]int{22}, slices.Repeat([]int{10}, 15)...), nil},
		{"8,000 code points stay", hook.Limits{}, some(1, 8_000), []int{8_000}, nil},
		{"the 8,001st is cut", hook.Limits{}, some(1, 8_001), []int{8_000}, []codes.Code{codes.SectionTruncated}},
		{"16,000 in all stay", hook.Limits{}, some(2, 8_000), []int{8_000, 8_000}, nil},
		{"the 16,001st is cut", hook.Limits{}, some(3, 6_000), []int{6_000, 6_000, 4_000}, []codes.Code{codes.SectionTruncated}},
		{"what has no room at all is left out", hook.Limits{}, some(3, 8_000), []int{8_000, 8_000}, []codes.Code{codes.SectionDropped}},
		{"a title counts", hook.Limits{}, []belay.PromptSection{{ID: "a", Title: strings.Repeat("é", 9_000), Body: "body"}}, []int{8_000}, []codes.Code{codes.SectionTruncated}},
		{"a budget does not raise the limit", hook.Limits{}, []belay.PromptSection{{ID: "a", Body: strings.Repeat("a", 9_000), Budget: 10_000}}, []int{8_000}, []codes.Code{codes.SectionTruncated}},
		{"the number of sections is a setting", hook.Limits{Sections: 1}, some(2, 1), []int{1}, []codes.Code{codes.SectionDropped}},
		{"the size of a section is a setting", hook.Limits{SectionCharacters: 5}, some(2, 9), []int{5, 5}, []codes.Code{codes.SectionTruncated, codes.SectionTruncated}},
		{"the size of all is a setting", hook.Limits{PromptCharacters: 5}, some(2, 3), []int{3, 2}, []codes.Code{codes.SectionTruncated}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			sections, diagnosed := mergeSections(t, test.limits, test.sections)
			var sizes []int
			for _, s := range sections {
				sizes = append(sizes, utf8.RuneCountInString(s.Title+s.Body))
			}
			if diff := cmp.Diff(test.want, sizes); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
			if !slices.Equal(diagnosed, test.codes) {
				t.Errorf("diagnostics %v, want %v", diagnosed, test.codes)
			}
		})
	}
}

// sectionPage is a slow and simple merge: it adds one character at a time, and counts all
// characters again before each addition.
type sectionPage struct {
	limits   hook.Limits
	sections []*belay.PromptSection
	codes    []codes.Code
}

func (p *sectionPage) size(s *belay.PromptSection) int {
	return len([]rune(s.Title)) + len([]rune(s.Body))
}

func (p *sectionPage) room(s *belay.PromptSection) bool {
	total := 0
	for _, other := range p.sections {
		total += p.size(other)
	}
	return total < p.limits.PromptCharacters && p.size(s) < p.limits.SectionCharacters
}

func (p *sectionPage) add(from string, c belay.PromptSection) {
	i := slices.IndexFunc(p.sections, func(s *belay.PromptSection) bool { return s.ID == c.ID })
	s := &belay.PromptSection{ID: c.ID, Order: c.Order, Budget: c.Budget}
	if i >= 0 {
		s = p.sections[i]
	}
	if (i < 0 && len(p.sections) == p.limits.Sections) || !p.room(s) {
		p.codes = append(p.codes, codes.SectionDropped)
		return
	}
	if i < 0 {
		p.sections = append(p.sections, s)
	}
	if !slices.Contains(s.From, from) {
		s.From = append(s.From, from)
	}
	cut := false
	if s.Title == "" {
		for _, r := range c.Title {
			if p.room(s) {
				s.Title += string(r)
			} else {
				cut = true
			}
		}
	}
	before, body := s.Body, []rune(c.Body)
	if c.Budget > 0 && len(body) > c.Budget {
		body, cut = body[:c.Budget], true
	}
	if before != "" && len(body) > 0 {
		body = append([]rune("\n\n"), body...)
	}
	for _, r := range body {
		if p.room(s) && (s.Budget <= 0 || len([]rune(s.Body)) < s.Budget) {
			s.Body += string(r)
		} else {
			cut = true
		}
	}
	if before != "" && len(s.Body)-len(before) <= 2 {
		s.Body = before
	}
	if cut {
		p.codes = append(p.codes, codes.SectionTruncated)
	}
}

// SPEC H-17
func TestPromptSectionsMatchReference(t *testing.T) {
	t.Parallel()
	text := func(most int) *rapid.Generator[string] {
		return rapid.StringOfN(rapid.SampledFrom([]rune("aé語🦀")), 0, most, -1)
	}
	rapid.Check(t, func(r *rapid.T) {
		page := &sectionPage{limits: hook.Limits{
			Sections:          rapid.IntRange(1, 4).Draw(r, "sections"),
			SectionCharacters: rapid.IntRange(1, 12).Draw(r, "of a section"),
			PromptCharacters:  rapid.IntRange(1, 24).Draw(r, "in all"),
		}}
		section := rapid.Custom(func(r *rapid.T) belay.PromptSection {
			return belay.PromptSection{
				ID:     rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(r, "id"),
				Title:  text(3).Draw(r, "title"),
				Body:   text(8).Draw(r, "body"),
				Order:  rapid.IntRange(-1, 1).Draw(r, "order"),
				Budget: rapid.IntRange(-1, 6).Draw(r, "budget"),
			}
		})
		hooks := rapid.SliceOfN(rapid.SliceOfN(section, 0, 3), 0, 4).Draw(r, "hooks")
		for i, sections := range hooks {
			for _, s := range sections {
				page.add(fmt.Sprintf("hook-%02d", i), s)
			}
		}
		var want []belay.PromptSection
		for order := -1; order <= 1; order++ {
			for _, s := range page.sections {
				if s.Order == order {
					want = append(want, *s)
				}
			}
		}
		got, diagnosed := mergeSections(t, page.limits, hooks...)
		if diff := cmp.Diff(want, got); diff != "" {
			r.Errorf("merged (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(page.codes, diagnosed); diff != "" {
			r.Errorf("diagnostics (-want +got):\n%s", diff)
		}
	})
}
