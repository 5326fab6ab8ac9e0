// Package policy has the typed settings of a turn. Hooks at turn.pre_policy set them. Each
// key has a rule that merges the values of several hooks. The settings apply to one turn
// only.
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

// rule is the part of a Key that does not depend on T.
type rule struct {
	key    string
	name   string // the rule's name: and, min, union or first
	merge  func(earlier, later any) (merged any, clash bool)
	decode func(json.RawMessage) (any, error)
}

// And declares a key whose value is true only if all values are true.
func And(key string) Key[bool] {
	return newKey(key, "and", func(a, b bool) (bool, bool) { return a && b, false })
}

// Min declares a key that takes the smallest value.
func Min[T cmp.Ordered](key string) Key[T] {
	return newKey(key, "min", func(a, b T) (T, bool) { return min(a, b), false })
}

// Union declares a key that joins all values into one sorted list without duplicates.
func Union[T cmp.Ordered](key string) Key[[]T] {
	return newKey(key, "union", func(a, b []T) ([]T, bool) {
		all := append(slices.Clone(a), b...)
		slices.Sort(all)
		return slices.Compact(all), false
	})
}

// First declares a key that takes the first value in plan order.
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

// Set returns a setting with a copy of the value.
func (k Key[T]) Set(value T) Setting {
	if own, ok := ownCopy(value); ok {
		value = own
	}
	return Setting{key: k.rule.key, value: value, rule: k.rule}
}

// Value returns the value of the setting. It reports false if the key is not set or has a
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
	value, _ = k.rule.merge(value, value) // sorts a union that has only one value
	typed, ok := value.(T)
	if !ok {
		return none, false
	}
	return ownCopy(typed)
}

// ownCopy returns a copy that shares no memory with the value. Booleans, numbers and
// strings need no copy. Everything else is encoded as JSON and decoded again.
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
	value any // has the key's type, or is a json.RawMessage if it was decoded from JSON
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

// as returns the value in the rule's type.
func (s Setting) as(rule *rule) (any, error) {
	if raw, ok := s.value.(json.RawMessage); ok {
		return rule.decode(raw)
	}
	return s.value, nil
}

// Settings is a list of settings, in the order in which they were made. In JSON it is an
// object.
type Settings []Setting

// MarshalJSON writes an object with the settings, sorted by key.
func (p Settings) MarshalJSON() ([]byte, error) {
	object := make(map[string]any, len(p))
	for _, s := range p {
		object[s.key] = s.value
	}
	return json.Marshal(object)
}

// UnmarshalJSON reads an object. Values are decoded later, by [Key.Value] and Merge.
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

// Merge adds later settings to p, by the rules of their keys. It also returns the names of
// keys whose values conflict. For such a key the earlier valid value is kept.
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

// joinSettings merges two settings of one key by the key's rule. It reports a clash if
// their rules differ, if a value cannot be decoded, or if the values conflict.
func joinSettings(earlier, later Setting) (Setting, bool) {
	rule := earlier.rule
	if rule == nil {
		rule = later.rule
	}
	if rule == nil { // both were decoded from JSON, so no rule is known
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
	case errA != nil: // a value that cannot be decoded must not replace a valid one
		return later, true
	}
	value, clash := rule.merge(a, b)
	return Setting{earlier.key, value, rule}, clash
}
