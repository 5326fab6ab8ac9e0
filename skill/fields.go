package skill

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/near"
)

// The limits of the Agent Skills specification, in characters.
const (
	specName          = 64
	specDescription   = 1024
	specCompatibility = 500
)

// specFields are the fields of the Agent Skills specification. ourFields are Belay's own
// fields.
var (
	specFields = []string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
	ourFields  = []string{"id", "priority", "hidden", "triggers", "agents", "tags", "disable-model-invocation", "user-invocable"}
	flatFields = []string{"body"} // only in a YAML file without front matter
)

// reader makes a skill of the fields of a file. It only notes harmless mistakes. It
// returns an error for a mistake that would give the skill more effect than its author
// meant.
type reader struct {
	path  string
	skill *Skill
}

// fieldError is a mistake in a field, because of which the file is not loaded.
type fieldError struct {
	line    int
	message string
}

func (e *fieldError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.message) }

func bad(line int, format string, args ...any) error {
	return &fieldError{line, fmt.Sprintf(format, args...)}
}

func (r *reader) notef(line int, format string, args ...any) {
	r.skill.Tolerated = append(r.skill.Tolerated, Problem{
		Kind: Tolerated, Path: r.path, Line: line, Skill: r.skill.Name, Message: fmt.Sprintf(format, args...),
	})
}

// readSkill makes a skill of a parsed file. The argument name is the default name: the
// name of the directory if inDirectory is true, or else the file name without its
// extension.
func readSkill(path string, doc *frontmatter.Document, name string, inDirectory bool) (*Skill, error) {
	r := &reader{path: path, skill: &Skill{Path: path}}
	s := r.skill
	s.Name = name
	if v := doc.Field("name"); v != nil {
		if text, ok := r.text("name", v); ok && strings.TrimSpace(text) != "" {
			s.Name = strings.TrimSpace(text)
		}
		if inDirectory && s.Name != name {
			r.notef(v.Line, "the name %q differs from its directory %q", s.Name, name)
		}
	}
	for _, n := range doc.Notes {
		r.notef(n.Line, "%s", n.Message)
	}
	for i := range doc.Fields {
		if err := r.field(&doc.Fields[i], inDirectory || doc.BodyLine > 0); err != nil {
			return s, err
		}
	}
	r.judge(doc)
	return s, nil
}

// judge notes where the skill deviates from the specification.
func (r *reader) judge(doc *frontmatter.Document) {
	s := r.skill
	line := func(field string) int {
		if v := doc.Field(field); v != nil {
			return v.Line
		}
		return 1
	}
	if n := utf8.RuneCountInString(s.Name); n > specName {
		r.notef(line("name"), "the name has %d characters: the specification allows %d", n, specName)
	}
	if s.Description == "" {
		r.notef(line("description"), "there is no description: the model sees only the name")
	}
	if s.UserOnly && s.ModelOnly && len(s.Triggers) == 0 {
		r.notef(line("user-invocable"), "neither the model nor users can use the skill: remove disable-model-invocation or user-invocable")
	}
	if n := utf8.RuneCountInString(s.Description); n > specDescription {
		r.notef(line("description"), "the description has %d characters: the specification allows %d", n, specDescription)
	}
	if n := utf8.RuneCountInString(s.Compatibility); n > specCompatibility {
		r.notef(line("compatibility"), "the compatibility has %d characters: the specification allows %d", n, specCompatibility)
	}
}

// field reads one field into r.skill.
func (r *reader) field(f *frontmatter.Field, markdown bool) error {
	s, v := r.skill, &f.Value
	var err error
	switch f.Key {
	case "name": // readSkill has already read the name
	case "id":
		s.ID, _ = r.text(f.Key, v)
		s.ID = strings.TrimSpace(s.ID)
	case "description":
		s.Description, _ = r.text(f.Key, v)
		s.Description = strings.TrimSpace(s.Description)
	case "license":
		s.License, _ = r.text(f.Key, v)
	case "compatibility":
		s.Compatibility, _ = r.text(f.Key, v)
	case "priority":
		s.Priority = r.number(f.Key, v)
	case "hidden":
		s.Hidden, err = truth(f.Key, v)
	case "disable-model-invocation":
		s.UserOnly, err = truth(f.Key, v)
	case "user-invocable":
		var may bool
		may, err = truth(f.Key, v)
		s.ModelOnly = !may && v.Kind != frontmatter.Null
	case "tags":
		if s.Tags, err = words(f.Key, v, ", "); err != nil {
			r.notef(v.Line, "%s", err.(*fieldError).message) //nolint:errorlint // words makes it
			err = nil
		}
	case "agents":
		s.Agents, err = words(f.Key, v, ", ")
	case "allowed-tools":
		s.AllowedTools, err = toolWords(f.Key, v)
	case "metadata":
		r.metadata(v)
	case "triggers":
		err = r.triggers(v)
	case "body":
		if !markdown {
			s.Body, _ = r.text(f.Key, v)
			break
		}
		fallthrough
	default:
		r.notef(f.Line, "Belay ignores the unknown field %q%s", f.Key, near.Hint(f.Key, slices.Concat(specFields, ourFields)))
	}
	return err
}

// text reads a text. It also accepts numbers, true and false, with a note. It ignores a list
// or a mapping, with a note too.
func (r *reader) text(key string, v *frontmatter.Value) (string, bool) {
	switch v.Kind {
	case frontmatter.String:
		return strings.Clone(v.Text), true // a copy, so that the whole file is not kept in memory
	case frontmatter.Null:
		return "", true
	case frontmatter.List, frontmatter.Map:
		r.notef(v.Line, "%s is %s and not a text, so Belay ignores it", key, v.Kind)
		return "", false
	default:
		r.notef(v.Line, "%s is %s and not a text: put quotes around it", key, v.Kind)
		return strings.Clone(v.Text), true
	}
}

func (r *reader) number(key string, v *frontmatter.Value) int {
	n, err := strconv.Atoi(v.Text)
	if v.Kind == frontmatter.List || v.Kind == frontmatter.Map || err != nil {
		r.notef(v.Line, "%s is not a whole number, so Belay uses 0", key)
		return 0
	}
	return n
}

// truth reads true or false, also written as yes and no, or on and off.
func truth(key string, v *frontmatter.Value) (bool, error) {
	switch strings.ToLower(v.Text) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	}
	if v.Kind == frontmatter.Null {
		return false, nil
	}
	return false, bad(v.Line, "%s is neither true nor false: write one of them", key)
}

// words reads a list of texts, or one text that is split at separators.
func words(key string, v *frontmatter.Value, between string) ([]string, error) {
	switch v.Kind {
	case frontmatter.Null:
		return nil, nil
	case frontmatter.List:
		var all []string
		for i := range v.List {
			item := &v.List[i]
			if item.Kind == frontmatter.List || item.Kind == frontmatter.Map || item.Kind == frontmatter.Null {
				return nil, bad(item.Line, "%s has %s in it: write a list of texts", key, item.Kind)
			}
			all = append(all, strings.Clone(item.Text))
		}
		return all, nil
	case frontmatter.Map:
		return nil, bad(v.Line, "%s is a mapping: write a list of texts", key)
	default:
		return strings.FieldsFunc(strings.Clone(v.Text), func(c rune) bool { return strings.ContainsRune(between, c) }), nil
	}
}

// toolWords reads allowed-tools: a list, or one text with spaces or commas between the
// tools, such as "Bash(git add:*) Read". It does not split inside parentheses. A missing
// value is an empty list, which allows no tools.
func toolWords(key string, v *frontmatter.Value) ([]string, error) {
	if v.Kind == frontmatter.List || v.Kind == frontmatter.Map {
		list, err := words(key, v, "")
		if list == nil {
			list = []string{}
		}
		return list, err
	}
	tools, text := []string{}, strings.Clone(v.Text)
	depth, start := 0, -1
	for i, c := range text + " " {
		switch {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		}
		between := depth == 0 && strings.ContainsRune(" ,\t\n", c)
		if between && start >= 0 {
			tools = append(tools, text[start:i])
			start = -1
		}
		if !between && start < 0 {
			start = i
		}
	}
	if start >= 0 {
		return nil, bad(v.Line, "%s has a parenthesis that is never closed: %s", key, text[start:])
	}
	return tools, nil
}

// metadata reads a mapping of texts into the skill's metadata.
func (r *reader) metadata(v *frontmatter.Value) {
	if v.Kind == frontmatter.Null {
		return
	}
	if v.Kind != frontmatter.Map {
		r.notef(v.Line, "metadata is %s and not a mapping, so Belay ignores it", v.Kind)
		return
	}
	r.skill.Metadata = make(map[string]string, len(v.Map))
	for i := range v.Map {
		f := &v.Map[i]
		if text, ok := r.text("metadata."+f.Key, &f.Value); ok {
			r.skill.Metadata[strings.Clone(f.Key)] = text
		}
	}
}

// triggers reads a list of triggers. Each is a keyword, or a mapping with type and
// pattern.
func (r *reader) triggers(v *frontmatter.Value) error {
	list := v.List
	switch v.Kind {
	case frontmatter.Null:
		return nil
	case frontmatter.String:
		list = []frontmatter.Value{*v}
	case frontmatter.List:
	default:
		return bad(v.Line, "triggers is %s: write a list of keywords, or of type and pattern", v.Kind)
	}
	for i := range list {
		item := &list[i]
		trigger := Trigger{Type: Keyword, Pattern: strings.Clone(item.Text)}
		line := item.Line
		switch item.Kind {
		case frontmatter.Map:
			for j := range item.Map {
				f := &item.Map[j]
				text := f.Value.Text
				switch {
				case f.Value.Kind == frontmatter.List || f.Value.Kind == frontmatter.Map:
					return bad(f.Value.Line, "the %s of a trigger is %s: write a text", f.Key, f.Value.Kind)
				case f.Key == "type":
					trigger.Type = TriggerType(strings.Clone(text))
				case f.Key == "pattern":
					trigger.Pattern, line = strings.Clone(text), f.Value.Line
				default:
					return bad(f.Line, "a trigger has no field %q: it has type and pattern%s", f.Key, near.Hint(f.Key, []string{"type", "pattern"}))
				}
			}
		case frontmatter.List, frontmatter.Null:
			return bad(item.Line, "a trigger is %s: write a keyword, or a type and a pattern", item.Kind)
		default:
		}
		compiled, err := trigger.compile()
		if err != nil {
			return bad(line, "%s", err.Error())
		}
		if compiled.broad {
			r.notef(line, "the trigger %q matches every task, so the skill is part of every prompt", trigger.Pattern)
		}
		trigger.compiled = compiled
		r.skill.Triggers = append(r.skill.Triggers, trigger)
	}
	return nil
}
