package belay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// TurnPolicy is the answer at turn.pre_policy: settings for this turn.
type TurnPolicy struct {
	// Policy holds the settings. Make them with a PolicyKey.
	Policy PolicySettings `json:"policy,omitempty" jsonschema:"settings for this turn, by key"`
	Aside
}

// SetPolicy returns an answer with the settings.
func SetPolicy(settings ...PolicySetting) TurnPolicy {
	return TurnPolicy{Policy: slices.Clone(settings)}
}

// PolicyKey is a typed setting of a turn, with a rule that merges the values of several
// subscriptions. Declare it once, as a package variable.
type PolicyKey[T any] struct{ rule *policyRule }

// policyRule is a key without its type.
type policyRule struct {
	key    string
	name   string // of the rule: and, min, union, first
	merge  func(earlier, later any) (merged any, clash bool)
	decode func(json.RawMessage) (any, error)
}

// PolicyAnd declares a key that is true only if every subscription that sets it sets true.
func PolicyAnd(key string) PolicyKey[bool] {
	return newPolicyKey(key, "and", func(a, b bool) (bool, bool) { return a && b, false })
}

// PolicyMin declares a key whose smallest value is used.
func PolicyMin[T cmp.Ordered](key string) PolicyKey[T] {
	return newPolicyKey(key, "min", func(a, b T) (T, bool) { return min(a, b), false })
}

// PolicyUnion declares a key whose values are joined and sorted, without duplicates.
func PolicyUnion[T cmp.Ordered](key string) PolicyKey[[]T] {
	return newPolicyKey(key, "union", func(a, b []T) ([]T, bool) {
		all := append(slices.Clone(a), b...)
		slices.Sort(all)
		return slices.Compact(all), false
	})
}

// PolicyFirst declares a key whose first value in plan order is used.
func PolicyFirst[T any](key string) PolicyKey[T] {
	return newPolicyKey(key, "first", func(a, b T) (T, bool) { return a, !sameJSON(a, b) })
}

func newPolicyKey[T any](key, rule string, merge func(a, b T) (T, bool)) PolicyKey[T] {
	return PolicyKey[T]{&policyRule{
		key:  key,
		name: rule,
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

// Key returns the key's name.
func (k PolicyKey[T]) Key() string { return k.rule.key }

// Set returns a setting with the value. The caller may change the value afterwards.
func (k PolicyKey[T]) Set(value T) PolicySetting {
	if own, ok := ownCopy(value); ok {
		value = own
	}
	return PolicySetting{key: k.rule.key, value: value, rule: k.rule}
}

// Value returns the value of the setting. It reports false if the key is not set, or has a
// value of another type. The caller may change the returned value.
func (k PolicyKey[T]) Value(settings PolicySettings) (T, bool) {
	var none T
	i := slices.IndexFunc(settings, func(s PolicySetting) bool { return s.key == k.rule.key })
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

// PolicySetting is one setting: a key and a value.
type PolicySetting struct {
	key   string
	value any // of the key's type, or json.RawMessage if it was read from a file
	rule  *policyRule
}

// Key returns the key's name.
func (s PolicySetting) Key() string { return s.key }

// as returns the value with the rule's type.
func (s PolicySetting) as(rule *policyRule) (any, error) {
	if raw, ok := s.value.(json.RawMessage); ok {
		return rule.decode(raw)
	}
	return s.value, nil
}

// PolicySettings are settings in the order in which they were made. Their JSON form is an
// object.
type PolicySettings []PolicySetting

// MarshalJSON writes an object of the settings, sorted by key.
func (p PolicySettings) MarshalJSON() ([]byte, error) {
	object := make(map[string]any, len(p))
	for _, s := range p {
		object[s.key] = s.value
	}
	return json.Marshal(object)
}

// UnmarshalJSON reads an object. A value is decoded when a key asks for it.
func (p *PolicySettings) UnmarshalJSON(data []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	var settings PolicySettings
	for key, value := range object {
		settings = append(settings, PolicySetting{key: key, value: value})
	}
	slices.SortFunc(settings, func(a, b PolicySetting) int { return cmp.Compare(a.key, b.key) })
	*p = settings
	return nil
}

// Answer returns what the policy asks for.
func (t TurnPolicy) Answer() *hook.Answer {
	var parts []hook.Part
	for _, s := range t.Policy {
		parts = append(parts, hook.Part{Kind: "policy", Needs: hook.CanSetPolicy, Content: s.key + "=" + contentOf(s.value)})
	}
	return answer(hook.SeverityPass, parts, t.Note, t.Context...)
}

func mergePolicy(m *hook.Merging, merged, t TurnPolicy) TurnPolicy {
	settings := slices.Clone(merged.Policy)
	for _, later := range t.Policy {
		i := slices.IndexFunc(settings, func(s PolicySetting) bool { return s.key == later.key })
		if i < 0 {
			settings = append(settings, later)
			continue
		}
		joined, clash := joinSettings(settings[i], later)
		if clash {
			m.Diagnose(codes.PolicyConflict, fmt.Sprintf("policy key %q is set to values that do not merge; the earlier valid value is used", later.key))
		}
		settings[i] = joined
	}
	merged.Policy = settings
	merged.Aside = mergeAside(m, merged.Aside, t.Aside)
	return merged
}

// joinSettings merges two settings of one key by the key's rule. It reports a clash if they
// have different rules, or if one of them cannot be decoded.
func joinSettings(earlier, later PolicySetting) (PolicySetting, bool) {
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
	return PolicySetting{earlier.key, value, rule}, clash
}
