package belay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// prompt is a system prompt and its parts, in order.
type prompt struct {
	parts []promptPart
	text  string
	day   string // the date in the environment block; empty if there is no such block
	of    *composition
}

type promptPart struct {
	kind, id, from, text string
}

// add adds a part at the end. An empty part is left out.
func (p *prompt) add(kind, id, from, text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	p.parts = append(slices.Clip(p.parts), promptPart{kind, id, from, text})
	if p.text != "" {
		p.text += "\n\n"
	}
	p.text += text
}

// compile makes the system prompt of a turn: the base prompt, and the sections from hooks.
// Prompt context is not part of it. It comes after the user's message, so that the provider
// can still use its cache for the beginning of later requests.
func (a *Agent) compile(sections []PromptSection) prompt {
	p := *a.today()
	for _, s := range sections {
		text := s.Body
		if s.Title != "" {
			text = "## " + s.Title + "\n\n" + s.Body
		}
		p.add("section", s.ID, strings.Join(s.From, ","), text)
	}
	return p
}

// manifest describes the parts of a prompt, without their text.
func (p *prompt) manifest(so soFar, tools []ToolDeclaration) promptManifest {
	m := promptManifest{Hash: textHash(p.text), Size: utf8.RuneCountInString(p.text), soFar: so}
	for _, part := range p.parts {
		m.Parts = append(m.Parts, manifestPart(part.kind, part.id, part.from, part.text))
	}
	for _, e := range so.Context {
		if e.isInPrompt() {
			m.Parts = append(m.Parts, manifestPart("context", e.ID, e.From, e.Text))
		}
	}
	if len(tools) > 0 {
		data, err := json.Marshal(tools)
		if err != nil {
			data = nil // cannot happen: the JSON was checked when the tool was added
		}
		m.Parts = append(m.Parts, manifestPart("tools", "", "", string(data)))
	}
	return m
}

func manifestPart(kind, id, from, text string) ManifestPart {
	return ManifestPart{Kind: kind, ID: id, From: from, Size: utf8.RuneCountInString(text), Hash: textHash(text)}
}

func textHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// closesContext finds text that a model could read as the end of the context element, or
// as a reminder.
var closesContext = lazyregexp.New(`(?i)<(\s*)/?(\s*(?:context|system-reminder))\b`)

// contextParts returns prompt context as text for the model. It follows the user's message.
func contextParts(entries []ContextEntry) []Part {
	parts := make([]Part, 0, len(entries))
	for _, e := range entries {
		if !e.isInPrompt() {
			continue
		}
		id := ""
		if e.ID != "" {
			id = fmt.Sprintf(" id=%q", html.EscapeString(e.ID))
		}
		text := closesContext.ReplaceAllString(strings.TrimSpace(e.Text), `<$1\/$2`)
		parts = append(parts, Text(fmt.Sprintf("<context%s from=%q>\n%s\n</context>", id, html.EscapeString(e.From), text)))
	}
	return parts
}
