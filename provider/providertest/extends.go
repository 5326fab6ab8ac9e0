package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// sameFields compares two requests field by field, except the field with the conversation.
// It returns both conversations, or an error that says where the requests differ.
func sameFields(earlier, later []byte, list string) (before, after json.RawMessage, err error) {
	var from, to map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(earlier, &from), json.Unmarshal(later, &to)); err != nil {
		return nil, nil, fmt.Errorf("the requests cannot be compared: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if name != list && string(from[name]) != string(to[name]) {
			return nil, nil, fmt.Errorf("%s differs: %.500s became %.500s", name, from[name], to[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if _, ok := from[name]; !ok {
			return nil, nil, fmt.Errorf("%s was added: %.500s", name, to[name])
		}
	}
	return from[list], to[list], nil
}

// begins returns an error if a conversation does not begin with an earlier conversation.
// what is the word that the error uses for an element.
func begins[T ~string | ~[]byte](what string, old, extended []T) error {
	for i, element := range old {
		if i >= len(extended) {
			return fmt.Errorf("%s %d of the conversation is gone: %.500s", what, i, element)
		}
		if string(element) != string(extended[i]) {
			return fmt.Errorf("%s %d of the conversation differs: %.500s became %.500s", what, i, element, extended[i])
		}
	}
	return nil
}
