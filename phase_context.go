package belay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// PromptContext is the answer at the two prompt context phases.
type PromptContext struct {
	Entries []ContextEntry `json:"entries,omitempty" jsonschema:"facts for the prompt"`
	Aside
}

// ContextEntry is a fact for the prompt. Later phases see it too.
type ContextEntry struct {
	ID   string `json:"id,omitempty" jsonschema:"a stable name"`
	Text string `json:"text" jsonschema:"the fact"`
	// Budget limits the text, in characters. Defaults to the limit of the hook runtime.
	Budget int `json:"budget,omitempty" jsonschema:"its own limit in characters"`
	// Data is for later hooks of the turn. The model does not see it. An entry that has
	// only Data is not part of the prompt, nor of its manifest. The hash of an entry
	// covers only its Text. Data counts towards the limit of all entries.
	Data json.RawMessage `json:"data,omitempty" jsonschema:"data for later hooks; the model does not see it"`
	// From is the subscription that added the entry. The runtime sets it.
	From string `json:"from,omitempty" jsonschema:"filled in by the runtime"`
}

// Answer returns the context in the form that the hook runtime uses.
func (c PromptContext) Answer() *hook.Answer {
	var parts []hook.Part
	for _, e := range c.Entries {
		parts = append(parts, hook.Part{Kind: "prompt_context", Needs: hook.CanAddContext, Content: e.Text})
	}
	return answer(hook.SeverityPass, parts, c.Note, c.Context...)
}

func mergePromptContext(m *hook.Merging, merged, c PromptContext) PromptContext {
	more := slices.Clone(c.Entries) // the handler may still use its own slice
	for i := range more {
		more[i].From = m.From
	}
	merged.Entries = addEntries(merged.Entries, more, m.Limits, func(code codes.Code, _, message string) { m.Diagnose(code, message) })
	merged.Aside = mergeAside(m, merged.Aside, c.Aside)
	return merged
}

// addEntries adds entries until a limit is reached. It never shortens earlier entries.
func addEntries(entries, more []ContextEntry, limits hook.Limits, diagnose func(code codes.Code, from, message string)) []ContextEntry {
	entries = slices.Clone(entries)
	left := limits.ContextCharacters
	for _, e := range entries {
		left -= e.size()
	}
	for _, e := range more {
		switch {
		case len(entries) >= limits.ContextEntries || left <= 0 || len(e.Data) > left:
			diagnose(codes.ContextDropped, e.From, "an entry was left out: the limit for prompt context was reached")
			continue
		case len(e.Data) > 0 && !json.Valid(e.Data):
			diagnose(codes.ContextDropped, e.From, "an entry was left out: its data is not JSON")
			continue
		}
		e.Data = bytes.Clone(e.Data) // the handler may still use its own slice
		most := left - len(e.Data)
		if e.Budget > 0 {
			most = min(most, e.Budget)
		}
		var cut bool
		if e.Text, cut = firstCharacters(e.Text, most); cut {
			diagnose(codes.ContextTruncated, e.From, fmt.Sprintf("an entry was cut to %d characters", most))
		}
		left -= e.size()
		entries = append(entries, e)
	}
	return entries
}

// isInPrompt reports whether the model gets the entry. An entry with only data is for hooks.
func (e *ContextEntry) isInPrompt() bool { return e.Text != "" || len(e.Data) == 0 }

// size is how much of the limit an entry takes.
func (e *ContextEntry) size() int { return utf8.RuneCountInString(e.Text) + len(e.Data) }

// firstCharacters returns the first n code points of text. It also reports whether it cut
// something off.
func firstCharacters(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	seen := 0
	for i := range text {
		if seen == n {
			return text[:i], true
		}
		seen++
	}
	return text, false
}

// PromptSections is the answer at turn.pre_prompt_compile.
type PromptSections struct {
	Sections []PromptSection `json:"sections,omitempty" jsonschema:"sections of the system prompt"`
	Aside
}

// PromptSection is a part of the system prompt.
type PromptSection struct {
	ID    string `json:"id" jsonschema:"a stable name; sections of one name are joined"`
	Title string `json:"title,omitempty" jsonschema:"its heading; the first one is used"`
	Body  string `json:"body" jsonschema:"its text"`
	// Order is the position of the section. Smaller numbers come first. Sections with the
	// same number have the plan order.
	Order int `json:"order,omitempty" jsonschema:"smaller first, then by plan order"`
	// Budget limits the body, in characters. When sections with the same id are joined,
	// each section's budget limits its own text, and the first section's budget limits the
	// joined text. Defaults to the limit of the hook runtime, which counts title and body.
	Budget int `json:"budget,omitempty" jsonschema:"its own limit in characters"`
	// From lists the subscriptions that added the section. The runtime sets it.
	From []string `json:"from,omitempty" jsonschema:"filled in by the runtime"`
}

// Answer returns the sections in the form that the hook runtime uses.
func (p PromptSections) Answer() *hook.Answer {
	var parts []hook.Part
	for _, s := range p.Sections {
		parts = append(parts, hook.Part{Kind: "section", Needs: hook.CanAddSections, Content: s.Title + "\n" + s.Body})
	}
	return answer(hook.SeverityPass, parts, p.Note, p.Context...)
}

// mergeSections adds sections in plan order. When a limit is reached, it cuts the new
// text, never the earlier text.
func mergeSections(m *hook.Merging, merged, p PromptSections) PromptSections {
	sections := slices.Clone(merged.Sections)
	for _, s := range p.Sections {
		s.From = []string{m.From}
		sections = addSection(m.Limits, sections, s, m.Diagnose)
	}
	sortSections(sections)
	merged.Sections = sections
	merged.Aside = mergeAside(m, merged.Aside, p.Aside)
	return merged
}

func sortSections(sections []PromptSection) {
	slices.SortStableFunc(sections, func(a, b PromptSection) int { return cmp.Compare(a.Order, b.Order) })
}

// addSection adds a section, or joins it with the section of the same id. It cuts the new
// text to the limit, and never cuts earlier text.
func addSection(limits hook.Limits, sections []PromptSection, s PromptSection, diagnose func(code codes.Code, message string)) []PromptSection {
	at := slices.IndexFunc(sections, func(o PromptSection) bool { return o.ID == s.ID })
	if at < 0 && len(sections) >= limits.Sections {
		diagnose(codes.SectionDropped, fmt.Sprintf("a section was left out: the prompt already has %d sections, which is the limit", len(sections)))
		return sections
	}
	room := limits.PromptCharacters
	for _, o := range sections {
		room -= o.size()
	}
	body, cutBody := firstCharacters(s.Body, s.budget())
	section, between := s, ""
	section.Title, section.Body = "", ""
	if at >= 0 {
		section = sections[at]
		if section.Body != "" && body != "" {
			between = "\n\n"
		}
	}
	room = min(room, limits.SectionCharacters-section.size())
	if room <= 0 {
		diagnose(codes.SectionDropped, "a section was left out: earlier sections have used the whole limit")
		return sections
	}
	cutTitle := false
	if section.Title == "" {
		section.Title, cutTitle = firstCharacters(s.Title, room)
		room -= utf8.RuneCountInString(section.Title)
	}
	room = min(room, section.budget()-utf8.RuneCountInString(section.Body))
	added, cutMore := firstCharacters(between+body, max(room, 0))
	if len(added) > len(between) {
		section.Body += added
	}
	if cutBody || cutTitle || cutMore {
		diagnose(codes.SectionTruncated, fmt.Sprintf("a section was cut to %d characters", section.size()))
	}
	if at < 0 {
		return append(sections, section)
	}
	if !slices.Contains(section.From, s.From[0]) {
		section.From = append(slices.Clone(section.From), s.From[0])
	}
	sections[at] = section
	return sections
}

// size returns how many characters the section adds to a prompt.
func (s PromptSection) size() int {
	return utf8.RuneCountInString(s.Title) + utf8.RuneCountInString(s.Body)
}

// budget returns the section's own limit, or a very large number if it has none.
func (s PromptSection) budget() int {
	if s.Budget > 0 {
		return s.Budget
	}
	return math.MaxInt
}
