// Package policy has the typed settings of a turn. Hooks at turn.pre_policy set them, and
// each key has a rule that merges the values of several hooks. The settings hold for one
// turn.
//
//	var Depth = policy.Min[int]("acme.depth")
//
//	return belay.SetPolicy(Depth.Set(3)), nil // at turn.pre_policy
//	depth, ok := Depth.Value(in.Policy())     // at later phases
package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Key is a typed setting of a turn, with a rule that merges the values of several
// subscriptions. Declare it once, as a package variable.
type Key[T any] struct{ rule *rule }

// rule is a key without its type.
type rule struct {
	key    string
	name   string // of the rule: and, min, union, first
	merge  func(earlier, later any) (merged any, clash bool)
	decode func(json.RawMessage) (any, error)
}

// And declares a key that is true only if every subscription that sets it sets true.
func And(key string) Key[bool] {
	return newKey(key, "and", func(a, b bool) (bool, bool) { return a && b, false })
}

// Min declares a key whose smallest value is used.
func Min[T cmp.Ordered](key string) Key[T] {
	return newKey(key, "min", func(a, b T) (T, bool) { return min(a, b), false })
}

// Union declares a key whose values are joined and sorted, without duplicates.
func Union[T cmp.Ordered](key string) Key[[]T] {
	return newKey(key, "union", func(a, b []T) ([]T, bool) {
		all := append(slices.Clone(a), b...)
		slices.Sort(all)
		return slices.Compact(all), false
	})
}

// First declares a key whose first value in plan order is used.
func First[T any](key string) Key[T] {
	return newKey(key, "first", func(a, b T) (T, bool) { return a, !sameJSON(a, b) })
}

func newKey[T any](key, name string, merge func(a, b T) (T, bool)) Key[T] {
	return Key[T]{&rule{
		key:  key,
		name: name,
		merge: func(earlier, later any) (any, bool) {
			a, okA := earlier.(T)
			b, okB := later.(T)
			if !okA || !okB {
				return earlier, true
			}
			return merge(a, b)
		},
		decode: func(data json.RawMessage) (any, error) {
			var value T
			if err := json.Unmarshal(data, &value); err != nil {
				return nil, fmt.Errorf("policy key %q: %w", key, err)
			}
			return value, nil
		},
	}}
}

func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Name returns the key's name.
func (k Key[T]) Name() string { return k.rule.key }

// Set returns a setting with the value. The caller may change the value afterwards.
func (k Key[T]) Set(value T) Setting {
	if own, ok := ownCopy(value); ok {
		value = own
	}
	return Setting{key: k.rule.key, value: value, rule: k.rule}
}

// Value returns the value of the setting. It reports false if the key is not set, or has a
// value of another type. The caller may change the returned value.
func (k Key[T]) Value(settings Settings) (T, bool) {
	var none T
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.key == k.rule.key })
	if i < 0 {
		return none, false
	}
	value, err := settings[i].as(k.rule)
	if err != nil {
		return none, false
	}
	value, _ = k.rule.merge(value, value) // a union is sorted even if it has only one value
	typed, ok := value.(T)
	if !ok {
		return none, false
	}
	return ownCopy(typed)
}

// ownCopy returns a copy that shares nothing with the value. Everything except numbers and
// texts is copied through its JSON form.
func ownCopy[T any](value T) (T, bool) {
	if kind := reflect.TypeFor[T]().Kind(); kind <= reflect.Complex128 || kind == reflect.String {
		return value, true
	}
	var own T
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &own)
	}
	return own, err == nil
}

// Setting is one setting: a key and a value.
type Setting struct {
	key   string
	value any // of the key's type, or json.RawMessage if it was read from a file
	rule  *rule
}

// Name returns the name of the key.
func (s Setting) Name() string { return s.key }

// String returns the setting as name=JSON.
func (s Setting) String() string {
	data, err := json.Marshal(s.value)
	if err != nil {
		return fmt.Sprintf("%s=%T", s.key, s.value)
	}
	return s.key + "=" + string(data)
}

// as returns the value with the rule's type.
func (s Setting) as(rule *rule) (any, error) {
	if raw, ok := s.value.(json.RawMessage); ok {
		return rule.decode(raw)
	}
	return s.value, nil
}

// Settings are settings in the order in which they were made. Their JSON form is an
// object.
type Settings []Setting

// MarshalJSON writes an object of the settings, sorted by key.
func (p Settings) MarshalJSON() ([]byte, error) {
	object := make(map[string]any, len(p))
	for _, s := range p {
		object[s.key] = s.value
	}
	return json.Marshal(object)
}

// UnmarshalJSON reads an object. A value is decoded when a key asks for it.
func (p *Settings) UnmarshalJSON(data []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	var settings Settings
	for key, value := range object {
		settings = append(settings, Setting{key: key, value: value})
	}
	slices.SortFunc(settings, func(a, b Setting) int { return cmp.Compare(a.key, b.key) })
	*p = settings
	return nil
}

// Merge adds later settings to p, by the rules of their keys. It returns the result and
// the names of the keys whose values do not merge; their earlier valid value is kept.
func (p Settings) Merge(later Settings) (merged Settings, conflicts []string) {
	merged = slices.Clone(p)
	for _, setting := range later {
		i := slices.IndexFunc(merged, func(m Setting) bool { return m.key == setting.key })
		if i < 0 {
			merged = append(merged, setting)
			continue
		}
		joined, clash := joinSettings(merged[i], setting)
		if clash {
			conflicts = append(conflicts, setting.key)
		}
		merged[i] = joined
	}
	return merged, conflicts
}

// joinSettings merges two settings of one key by the key's rule. It reports a clash if they
// have different rules, or if one of them cannot be decoded.
func joinSettings(earlier, later Setting) (Setting, bool) {
	rule := earlier.rule
	if rule == nil {
		rule = later.rule
	}
	if rule == nil { // both came from files and no key is declared
		return earlier, !sameJSON(earlier.value, later.value)
	}
	if later.rule != nil && (later.rule.name != rule.name) {
		return earlier, true
	}
	a, errA := earlier.as(rule)
	b, errB := later.as(rule)
	switch {
	case errB != nil:
		return earlier, true
	case errA != nil: // a value that cannot be decoded must not hide one that can
		return later, true
	}
	value, clash := rule.merge(a, b)
	return Setting{earlier.key, value, rule}, clash
}
