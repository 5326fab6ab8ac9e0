package subagent

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/near"
)

// fields are the keys of a declaration.
var fields = []string{"name", "description", "model", "prompt", "tools", "skills", "hooks", "mode", "budget", "enforce_allowed_tools"}

// Parse reads the text of a file. The extension of file selects the format. Parse returns
// all mistakes. If there are any, do not use the declaration.
func Parse(file string, text []byte) (*Declaration, []Problem) {
	name := filepath.Base(file)
	r := &reading{d: &Declaration{Path: file, Name: strings.TrimSuffix(name, filepath.Ext(name))}}
	doc, err := document(format(name), string(text))
	if err != nil {
		line := 0
		if e, ok := errors.AsType[*frontmatter.Error](err); ok {
			line, err = e.Line, errors.New(e.Message)
		}
		r.wrongf(line, "%v", err)
		return r.d, r.problems
	}
	for i := range doc.Fields {
		r.field(&doc.Fields[i])
	}
	if body := strings.TrimSpace(doc.Body); body != "" {
		if doc.Field("prompt") != nil {
			r.wrongf(doc.Field("prompt").Line, "there is a prompt here and another one after the frontmatter: remove one of them")
		}
		r.d.Prompt = body
	}
	if !validName.MatchString(r.d.Name) {
		line := 0
		if v := doc.Field("name"); v != nil {
			line = v.Line
		}
		r.wrongf(line, "the name %q: %s", r.d.Name, nameRule)
	}
	return r.d, r.problems
}

func document(format, text string) (*frontmatter.Document, error) {
	switch format {
	case ".yaml", ".yml":
		return frontmatter.ParseYAML(text)
	case ".json":
		return frontmatter.ParseJSON(text)
	case ".md":
		doc, err := frontmatter.Parse(text)
		if err == nil && !doc.Found {
			err = &frontmatter.Error{Line: 1, Message: "there is no frontmatter: begin the file with a line ---, the fields and another line ---"}
		}
		return doc, err
	default:
		return nil, errors.New("its extension must be .yaml, .yml, .json or .md")
	}
}

// reading is the state while a file is read.
type reading struct {
	d        *Declaration
	problems []Problem
}

func (r *reading) wrongf(line int, format string, args ...any) {
	r.problems = append(r.problems, Problem{Path: r.d.Path, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (r *reading) field(f *frontmatter.Field) {
	switch f.Key {
	case "name":
		r.d.Name = r.text(f)
	case "description":
		r.d.Description = strings.TrimSpace(r.text(f))
	case "model":
		r.d.Model = r.text(f)
	case "prompt":
		r.d.Prompt = strings.TrimSpace(r.text(f))
	case "tools":
		r.d.Tools = r.names(f)
	case "skills":
		r.d.Skills = r.names(f)
	case "hooks":
		r.d.Hooks = r.hooks(f)
	case "mode":
		r.d.Mode = r.text(f)
	case "budget":
		r.budget(f)
	case "enforce_allowed_tools":
		if f.Value.Kind != frontmatter.Bool {
			r.wrongf(f.Line, "%s is %s: write true or false", f.Key, f.Value.Kind)
		}
		r.d.EnforceAllowedTools = strings.EqualFold(f.Value.Text, "true")
	default:
		r.wrongf(f.Line, "unknown key %q%s: valid keys are %s", f.Key, near.Hint(f.Key, fields), strings.Join(fields, ", "))
	}
}

func (r *reading) text(f *frontmatter.Field) string {
	if f.Value.Kind != frontmatter.String {
		r.wrongf(f.Line, "%s is %s: write a text", f.Key, f.Value.Kind)
	}
	return f.Value.Text
}

// names reads a list of names, or a text with commas between names. An empty value is a
// mistake, because it could mean none or all.
func (r *reading) names(f *frontmatter.Field) []string {
	names := []string{}
	add := func(line int, name string) {
		if name = strings.TrimSpace(name); name == "" {
			r.wrongf(line, "%s: a name is empty", f.Key)
		}
		names = append(names, name)
	}
	switch f.Value.Kind {
	case frontmatter.List:
		for _, v := range f.Value.List {
			if v.Kind != frontmatter.String {
				r.wrongf(v.Line, "%s contains %s: write only names", f.Key, v.Kind)
				continue
			}
			add(v.Line, v.Text)
		}
	case frontmatter.String:
		for name := range strings.SplitSeq(f.Value.Text, ",") {
			add(f.Value.Line, name)
		}
	default:
		r.wrongf(f.Line, "%s is %s: write a list of names, write [] for none, or leave the key out for all", f.Key, f.Value.Kind)
	}
	return names
}

// buckets are short names for phases. Package declare knows the phase of each.
var buckets = []string{"onStart", "onToolCall", "onToolEnd", "onModelCall", "onModelEnd", "onComplete", "onError"}

// hooks checks the outer form of hooks: a list, or a mapping from phases or buckets to
// lists. Package declare checks each hook.
func (r *reading) hooks(f *frontmatter.Field) frontmatter.Value {
	switch f.Value.Kind {
	case frontmatter.List:
		r.hookList(f.Value, "")
	case frontmatter.Map:
		known := phaseNames()
		for _, bucket := range f.Value.Map {
			if first, _ := utf8.DecodeRuneInString(bucket.Key); unicode.IsUpper(first) { // such as PreToolUse of Claude Code
				r.wrongf(bucket.Line, "hooks: unknown phase %q: this is the format of another program: write a list of hooks, each with its phase, such as tool.pre", bucket.Key)
				continue
			}
			if !slices.Contains(known, bucket.Key) {
				r.wrongf(bucket.Line, "hooks: unknown phase %q%s", bucket.Key, near.Hint(bucket.Key, known))
				continue
			}
			r.hookList(bucket.Value, bucket.Key)
		}
	default:
		r.wrongf(f.Line, "hooks is %s: write a list of hooks, or a mapping from phases to lists of hooks", f.Value.Kind)
	}
	return f.Value
}

// hookList checks that a list contains hooks. In a bucket, a single hook may stand in
// place of the list.
func (r *reading) hookList(v frontmatter.Value, bucket string) {
	list := v.List
	if v.Kind != frontmatter.List {
		list = []frontmatter.Value{v}
	}
	for _, hook := range list {
		switch {
		case hook.Kind != frontmatter.Map:
			r.wrongf(hook.Line, "an entry of hooks is %s: write a mapping", hook.Kind)
		case bucket != "" && slices.ContainsFunc(hook.Map, func(f frontmatter.Field) bool { return f.Key == "phase" }):
			r.wrongf(hook.Line, "hooks: the hook has the key phase, but it is already in the list of %s: remove the key", bucket)
		}
	}
}

// phaseNames returns the names of all phases and buckets.
func phaseNames() []string {
	var names []string
	for _, p := range belay.Phases() {
		names = append(names, p.Name())
	}
	names = append(names, buckets...)
	slices.Sort(names)
	return names
}

// budget reads the limits of a budget.
func (r *reading) budget(f *frontmatter.Field) {
	if f.Value.Kind != frontmatter.Map {
		r.wrongf(f.Line, "budget is %s: write a mapping of turn_tokens, turn_cost, session_tokens and session_cost", f.Value.Kind)
		return
	}
	tokens := map[string]*int{"turn_tokens": &r.d.Budget.TurnTokens, "session_tokens": &r.d.Budget.SessionTokens}
	dollars := map[string]*float64{"turn_cost": &r.d.Budget.TurnCost, "session_cost": &r.d.Budget.SessionCost}
	for _, bound := range f.Value.Map {
		n, err := strconv.ParseFloat(bound.Value.Text, 64)
		number := bound.Value.Kind == frontmatter.Int || bound.Value.Kind == frontmatter.Float
		whole, isTokens := tokens[bound.Key]
		cost, isDollars := dollars[bound.Key]
		switch {
		case !isTokens && !isDollars:
			known := []string{"turn_tokens", "turn_cost", "session_tokens", "session_cost"}
			r.wrongf(bound.Line, "budget: unknown key %q%s: valid keys are %s", bound.Key, near.Hint(bound.Key, known), strings.Join(known, ", "))
		case !number || err != nil || !(n > 0) || math.IsInf(n, 0):
			r.wrongf(bound.Line, "budget: %s: write a number above 0, or remove the key for no limit", bound.Key)
		case isDollars:
			*cost = n
		case n != math.Trunc(n) || n > math.MaxInt32:
			r.wrongf(bound.Line, "budget: %s: write a whole number of tokens, at most %d", bound.Key, math.MaxInt32)
		default:
			*whole = int(n)
		}
	}
}
