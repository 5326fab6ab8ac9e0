package declare

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/near"
)

// aHook names a hook in error messages.
const aHook = "a hook"

var matchKeys = []string{"tools", "agents", "labels", "when"}

// mapping reads the keys of a mapping. Unknown keys and keys without a value are faults.
func (r *reading) mapping(v frontmatter.Value, what string, form map[string]func(frontmatter.Value)) {
	if v.Kind != frontmatter.Map {
		r.faultf(v.Line, "%s is %s: write a mapping, key: value", what, v.Kind)
		return
	}
	known := slices.Sorted(maps.Keys(form))
	for _, f := range v.Map {
		read, ok := form[f.Key]
		switch {
		case !ok:
			hint := near.Hint(f.Key, known)
			if what == aHook && slices.Contains(matchKeys, f.Key) {
				hint = fmt.Sprintf(": it belongs to match: write match: {%s: …}, or indent it below match", f.Key)
			}
			if hint == "" {
				hint = ": " + what + " takes " + strings.Join(known, ", ")
			}
			r.faultf(f.Line, "unknown key %q%s", f.Key, hint)
		case f.Value.Kind == frontmatter.Null:
			r.faultf(f.Line, "%s has no value: give it one, or leave it out", f.Key)
		default:
			read(f.Value)
		}
	}
}

// text reads a text, which must not be empty.
func (r *reading) text(v frontmatter.Value, what string) string {
	switch {
	case v.Kind == frontmatter.String && strings.TrimSpace(v.Text) != "":
		return v.Text
	case v.Kind == frontmatter.String:
		r.faultf(v.Line, "%s is empty: give it a value, or leave it out", what)
	case v.Kind == frontmatter.List || v.Kind == frontmatter.Map:
		r.faultf(v.Line, "%s is %s: write a text", what, v.Kind)
	default:
		r.faultf(v.Line, "%s is %s: put quotes around it to make it a text", what, v.Kind)
	}
	return ""
}

func (r *reading) texts(v frontmatter.Value, what string) []string {
	if v.Kind != frontmatter.List {
		r.faultf(v.Line, "%s is %s: write a list, [a, b]", what, v.Kind)
		return nil
	}
	if len(v.List) == 0 {
		r.faultf(v.Line, "%s is an empty list: leave it out", what)
	}
	list := make([]string, 0, len(v.List))
	for _, item := range v.List {
		list = append(list, r.text(item, "an entry of "+what))
	}
	return list
}

// variable matches the name of an environment variable.
var variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// names reads a list of variable names.
func (r *reading) names(v frontmatter.Value, what string) []string {
	list := r.texts(v, what)
	for i, name := range list {
		if name != "" && !variable.MatchString(name) {
			r.faultf(v.List[i].Line, "%q is not the name of an environment variable: %s lists names, not values", name, what)
		}
	}
	return list
}

func (r *reading) boolean(v frontmatter.Value, what string) bool {
	if v.Kind != frontmatter.Bool {
		r.faultf(v.Line, "%s is %s: write true or false", what, v.Kind)
	}
	return strings.EqualFold(v.Text, "true")
}

func (r *reading) integer(v frontmatter.Value, what string) int {
	n, err := strconv.Atoi(v.Text)
	if v.Kind != frontmatter.Int || err != nil {
		r.faultf(v.Line, "%s is not a whole number: write one", what)
	}
	return n
}

func (r *reading) number(v frontmatter.Value, what string) float64 {
	n, err := strconv.ParseFloat(v.Text, 64)
	if v.Kind != frontmatter.Int && v.Kind != frontmatter.Float || err != nil {
		r.faultf(v.Line, "%s is not a number: write one", what)
	}
	return n
}

func (r *reading) duration(v frontmatter.Value, what string) time.Duration {
	d, err := time.ParseDuration(v.Text)
	switch {
	case v.Kind != frontmatter.String || err != nil:
		r.faultf(v.Line, "%s is not a duration: write it with its unit, such as 500ms, 5s or 2m", what)
	case d <= 0:
		r.faultf(v.Line, "%s is %s: it must be more than zero", what, v.Text)
	}
	return d
}

// word reads a value that must be one of the known words.
func (r *reading) word(v frontmatter.Value, what string, known []string, set func(string) error) {
	text := r.text(v, what)
	if text == "" {
		return
	}
	if err := set(text); err != nil {
		r.faultf(v.Line, "%s: unknown value %q%s: use one of %s", what, text, near.Hint(text, known), strings.Join(known, ", "))
	}
}
