package skill

import (
	"html"
	"regexp"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/scan"
)

// Tokens returns the /names in a text, by which users name a directive or a skill.
// A token begins at the start of the text or after a space, with a slash and an
// ASCII letter; letters, digits, _ and - may follow, and then a space or the end.
func Tokens(text string) []Token { return scan.Tokens(text) }

// Token is a name with a slash in front: text[Start:End] is the token.
type Token = scan.Token

// placeholders matches the placeholders of typed names, of directives and skills.
var placeholders = regexp.MustCompile(`\[invoked_extension__(hook|skill)_([A-Za-z][A-Za-z0-9_-]*)\]`)

// taskOf returns the task: a message without its placeholders.
func taskOf(text string) string {
	if !strings.Contains(text, "[invoked_extension__") {
		return text
	}
	return strings.TrimSpace(placeholders.ReplaceAllString(text, ""))
}

// named returns the skills that a message has a placeholder for, each once.
func (s *set) named(text string) []*Skill {
	if !strings.Contains(text, "[invoked_extension__skill_") {
		return nil
	}
	var skills []*Skill
	seen := make(map[string]bool)
	for _, found := range placeholders.FindAllStringSubmatch(text, -1) {
		if found[1] != "skill" || seen[found[2]] {
			continue
		}
		seen[found[2]] = true
		if o := s.find(found[2]); o != nil {
			skills = append(skills, o.skill)
		}
	}
	return skills
}

// closes matches text that a model could read as the end of an element.
var closes = regexp.MustCompile(`(?i)<(\s*)/(\s*(?:content|skill|sections|resources|available_skills|system-reminder))\b`)

// contained returns a text that cannot end its enclosing element.
func contained(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return closes.ReplaceAllString(text, `<$1\/$2`)
}

// Element renders a reading for a model.
func (r Reading) Element() string {
	return r.open() + contained(r.Text) + r.shut()
}

func (r Reading) open() string {
	var b strings.Builder
	b.WriteString("<skill")
	for _, attribute := range []struct{ name, value string }{{"name", r.Name}, {"path", r.Path}, {"section", r.Section}} {
		if attribute.value != "" {
			b.WriteString(" " + attribute.name + `="` + html.EscapeString(attribute.value) + `"`)
		}
	}
	b.WriteString(">\n<content>\n")
	return b.String()
}

func (r Reading) shut() string {
	var b strings.Builder
	b.WriteString("\n</content>\n")
	for _, list := range []struct {
		element string
		names   []string
	}{{"sections", r.Sections}, {"resources", r.Resources}} {
		if len(list.names) == 0 {
			continue
		}
		b.WriteString("<" + list.element + ">")
		for i, name := range list.names {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(strings.ReplaceAll(html.EscapeString(name), ",", "&#44;"))
		}
		b.WriteString("</" + list.element + ">\n")
	}
	b.WriteString("</skill>")
	return b.String()
}

// Message returns the message that is put before the user's message when it names a
// skill: an element around the parts that a handler returned, or around the reading
// if there are none.
func (r Reading) Message(parts ...belay.Part) belay.Injection {
	if len(parts) == 0 {
		parts = []belay.Part{belay.Text(r.Text)}
	}
	var whole []belay.Part
	for _, p := range parts {
		if n := len(whole); p.Type == belay.PartText && n > 0 && whole[n-1].Type == belay.PartText {
			whole[n-1].Text += "\n" + p.Text
			continue
		}
		whole = append(whole, p)
	}
	for i := range whole {
		whole[i].Text = contained(whole[i].Text)
	}
	open, shut := r.open(), r.shut()
	if first := &whole[0]; first.Type == belay.PartText {
		first.Text = open + first.Text
	} else {
		whole = append([]belay.Part{belay.Text(open)}, whole...)
	}
	if last := &whole[len(whole)-1]; last.Type == belay.PartText {
		last.Text += shut
	} else {
		whole = append(whole, belay.Text(strings.TrimPrefix(shut, "\n")))
	}
	return belay.Injection{Parts: whole, IsSkillInjection: true}
}
