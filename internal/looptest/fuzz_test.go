package looptest_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// For any bytes, DecodeInput returns an error, or an input that the schema of the phase
// accepts and that encodes to the same JSON.
//
// SPEC C-12, H-08
func FuzzDecodeInput(f *testing.F) {
	phases := everyPhase()
	schemas := make([]*jsonschema.Resolved, len(phases))
	for i, p := range phases {
		schemas[i] = resolveSchema(f, schemaOf(f, p).Input)
		f.Add(uint8(i), encode(f, sample(schemas[i].Schema(), "value", true)))
		f.Add(uint8(i), encode(f, sample(schemas[i].Schema(), "value", false)))
	}
	for _, odd := range []string{
		"null", "{}", "[]", "", " { } ", `{"text":null}`, `{"text":"\ud800"}`, "{\"input\":\"\xff\"}", `{"input":1e999}`,
		`{"input":{"a":1,"a":2}}`, `{"original":null}`, `{"policy":null}`, `{"policy":{"k":null}}`, `{"parts":null}`,
	} {
		for i := range phases {
			f.Add(uint8(i), []byte(odd))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		i := int(which) % len(phases)
		p := phases[i]
		in, err := p.decode(testScope, data)
		if err != nil {
			return
		}
		written, err := json.Marshal(in)
		if err != nil {
			t.Fatalf("%s takes %q and cannot write it: %v", p.Name(), data, err)
		}
		var value any
		if json.Unmarshal(written, &value) != nil {
			t.Skip("a number that is JSON, and too large for Go to check")
		}
		if err := schemas[i].Validate(value); err != nil {
			t.Errorf("%s takes %q and writes %s, which its schema refuses: %v", p.Name(), data, written, err)
		}
		again, err := p.decode(testScope, written)
		if err != nil {
			t.Fatalf("%s does not read %s, which it wrote: %v", p.Name(), written, err)
		}
		if rewritten := encode(t, again); !bytes.Equal(written, rewritten) {
			t.Errorf("%s writes %s and then %s", p.Name(), written, rewritten)
		}
	})
}

// Whatever hooks contribute, the limits hold, and no character is cut in two.
//
// SPEC H-17
func FuzzMergeSections(f *testing.F) {
	f.Add([]byte("a title|body of the text|a|語語語語"), uint8(2), uint16(10), uint16(20))
	f.Add([]byte("||||||"), uint8(1), uint16(1), uint16(1))
	f.Add([]byte("\xff\xfe|\x80|a|b|\xff|\xff"), uint8(0), uint16(0), uint16(3))
	f.Fuzz(func(t *testing.T, data []byte, count uint8, each, all uint16) {
		limits := hook.Limits{Sections: 1 + int(count%20), SectionCharacters: 1 + int(each), PromptCharacters: 1 + int(all)}
		valid := utf8.Valid(data)
		var hooks [][]belay.PromptSection
		words := bytes.Split(data, []byte("|"))
		for i := 0; i+1 < len(words) && i < 64; i += 2 { // two words in a row make a section
			title, body := string(words[i]), string(words[i+1])
			section := belay.PromptSection{ID: title[:min(len(title), 1)], Title: title, Body: body, Order: len(title) % 3, Budget: len(title) - 4}
			if i%3 == 0 || len(hooks) == 0 {
				hooks = append(hooks, nil)
			}
			hooks[len(hooks)-1] = append(hooks[len(hooks)-1], section)
		}
		sections, _ := mergeSections(t, limits, hooks...)
		total, seen := 0, map[string]bool{}
		for i, s := range sections {
			size := utf8.RuneCountInString(s.Title) + utf8.RuneCountInString(s.Body)
			total += size
			if size > limits.SectionCharacters {
				t.Errorf("section %q has %d characters, more than %d", s.ID, size, limits.SectionCharacters)
			}
			if s.Budget > 0 && utf8.RuneCountInString(s.Body) > s.Budget {
				t.Errorf("section %q has %d characters, beyond its budget of %d", s.ID, utf8.RuneCountInString(s.Body), s.Budget)
			}
			if valid && !utf8.ValidString(s.Title+s.Body) {
				t.Errorf("section %q: a character was cut in two: %q", s.ID, s.Body)
			}
			if seen[s.ID] || len(s.From) == 0 || (i > 0 && sections[i-1].Order > s.Order) {
				t.Errorf("section %q is there twice, from nobody, or out of order", s.ID)
			}
			seen[s.ID] = true
		}
		if len(sections) > limits.Sections || total > limits.PromptCharacters {
			t.Errorf("%d sections of %d characters, more than %d of %d", len(sections), total, limits.Sections, limits.PromptCharacters)
		}
	})
}
