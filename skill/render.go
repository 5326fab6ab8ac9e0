package skill

import (
	"html"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/scan"
)

// Tokens returns the /names in a text, with which users name a directive or a skill. A
// token begins at the start of the text or after a space. It is a slash and an ASCII
// letter, followed by letters, digits, _ and -. A colon may stand between two of these. A
// space or the end of the text must follow.
func Tokens(text string) []Token { return scan.Tokens(text) }

// Token is a name with a slash before it. Its text is text[Start:End].
type Token = scan.Token

// placeholders matches the placeholders that replace the /names of directives and skills
// in a message.
var placeholders = lazyregexp.New(`\[invoked_extension__(hook|skill)_([A-Za-z][A-Za-z0-9_:-]*)\]`)

// taskOf returns a message without placeholders.
func taskOf(text string) string {
	if !strings.Contains(text, "[invoked_extension__") {
		return text
	}
	return strings.TrimSpace(placeholders.ReplaceAllString(text, ""))
}

// named returns the skills for which a message has a placeholder. Each skill is returned
// once.
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

// closes matches an end tag that could end the element around a skill's text.
var closes = lazyregexp.New(`(?i)<(\s*)/(\s*(?:content|skill|sections|resources|available_skills|system-reminder))\b`)

// contained escapes end tags in a text, so that the text cannot end its element.
func contained(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return closes.ReplaceAllString(text, `<$1\/$2`)
}

// Element returns the reading as an XML element for the model.
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

// Message returns the message that is added before a user's message that names a skill.
// It is an element around the parts that the handler returned. If there are no parts, it
// contains the text of the reading.
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
