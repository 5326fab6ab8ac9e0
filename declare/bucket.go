package declare

import (
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/frontmatter"
)

// buckets maps the short names used in agent files to phases.
var buckets = map[string]string{
	"onStart": "session.start", "onToolCall": "tool.pre", "onToolEnd": "tool.post", "onModelCall": "model.pre",
	"onModelEnd": "model.post", "onComplete": "turn.post_turn", "onError": "error",
}

// buckets reads a mapping from buckets or phases to lists of hooks.
func (r *reading) buckets(v frontmatter.Value) {
	form := make(map[string]func(frontmatter.Value))
	bucket := func(name, phase string) {
		form[name] = func(v frontmatter.Value) {
			list := v.List
			switch v.Kind {
			case frontmatter.List:
			case frontmatter.Map:
				list = []frontmatter.Value{v}
			default:
				r.faultf(v.Line, "%s is %s: write a list of hooks", name, v.Kind)
			}
			for i, item := range list {
				r.declaration(unflattened(named(item, fmt.Sprintf("%s.%d", name, i+1))), phase)
			}
		}
	}
	for name, phase := range buckets {
		bucket(name, phase)
	}
	for _, p := range belay.Phases() {
		bucket(p.Name(), p.Name())
	}
	r.mapping(v, "a mapping of hooks", form)
}

// named adds an id to a hook that has none.
func named(v frontmatter.Value, id string) frontmatter.Value {
	if v.Kind != frontmatter.Map || slices.ContainsFunc(v.Map, func(f frontmatter.Field) bool { return f.Key == "id" }) {
		return v
	}
	made := frontmatter.Field{Key: "id", Line: v.Line, Value: frontmatter.Value{Kind: frontmatter.String, Text: id, Line: v.Line}}
	v.Map = append([]frontmatter.Field{made}, v.Map...)
	return v
}

// unflattened converts a hook of a bucket to the usual form. In a bucket, a hook may be
// flat: the keys of the action are on the same level as the key action.
//
//	{action: approve, tools: [write]}
//	{action: webhook, url: https://example.com/}
//	{action: save_json, path: calls.jsonl}
//	{action: log, level: warn}
//	{action: command, command: ./check.sh}
//
// A key that does not belong to the action stays where it is. It is later reported as a
// mistake.
func unflattened(v frontmatter.Value) frontmatter.Value {
	if v.Kind != frontmatter.Map {
		return v
	}
	h := flatHook{fields: slices.Clone(v.Map)}
	if tools, ok := h.take("tools"); ok {
		h.nest("match", tools.Line, tools)
	}
	if action, ok := h.take("action"); ok {
		h.action(action)
	}
	v.Map = h.fields
	return v
}

// flatHook is a flat hook during the conversion.
type flatHook struct{ fields []frontmatter.Field }

// take removes a field and returns it.
func (h *flatHook) take(key string) (frontmatter.Field, bool) {
	i := slices.IndexFunc(h.fields, func(f frontmatter.Field) bool { return f.Key == key })
	if i < 0 {
		return frontmatter.Field{}, false
	}
	f := h.fields[i]
	h.fields = slices.Delete(h.fields, i, i+1)
	return f, true
}

// nest moves fields into a mapping with the given key. If the hook already has that key,
// the fields stay at the top level, where they are reported as a mistake.
func (h *flatHook) nest(key string, line int, fields ...frontmatter.Field) {
	if slices.ContainsFunc(h.fields, func(f frontmatter.Field) bool { return f.Key == key }) {
		h.fields = append(h.fields, fields...)
		return
	}
	h.fields = append(h.fields, frontmatter.Field{Key: key, Line: line, Value: frontmatter.Value{Kind: frontmatter.Map, Line: line, Map: fields}})
}

// action moves the fields of an action into the form that other hooks have.
func (h *flatHook) action(action frontmatter.Field) {
	var own []frontmatter.Field
	take := func(keys ...string) {
		for _, key := range keys {
			if f, ok := h.take(key); ok {
				own = append(own, f)
			}
		}
	}
	switch action.Value.Text {
	case "webhook":
		take("url", "secret")
		h.nest("webhook", action.Line, own...)
		return
	case "command":
		if command, ok := h.take("command"); ok {
			if command.Value.Kind == frontmatter.String {
				command.Key = "run"
			}
			h.fields = append(h.fields, command)
			return
		}
	case "save_json":
		if path, ok := h.take("path"); ok {
			path.Key = "save_json"
			h.nest("action", action.Line, path)
			return
		}
	case "log":
		if take("message", "level", "content"); len(own) > 0 {
			settings := frontmatter.Field{Key: "log", Line: action.Line, Value: frontmatter.Value{Kind: frontmatter.Map, Line: action.Line, Map: own}}
			h.nest("action", action.Line, settings)
			return
		}
	}
	h.fields = append(h.fields, action)
}
