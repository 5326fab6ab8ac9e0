package typeschema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Fill adds defaults to a valid input, for properties that are absent or null. It removes a
// null that counts as absent. All other bytes stay unchanged. If nothing must change, Fill
// returns the input itself.
func (t *Type) Fill(input []byte) ([]byte, error) {
	if !t.root.fills && !bytes.Contains(input, []byte("null")) {
		return input, nil
	}
	return t.root.rewrite(input, true, 0)
}

// Decode decodes a valid input. Defaults replace absent and null values. Durations can be
// written as 1h30m, and whole numbers as 5.0. An error contains a JSON pointer for each
// value that does not fit.
func (t *Type) Decode(input []byte, into any) error {
	if !t.root.prepares && !bytes.Contains(input, []byte("null")) { // null counts as absent for every type
		err := json.Unmarshal(input, into)
		if err == nil {
			return nil
		}
		reflect.ValueOf(into).Elem().SetZero()
	}
	prepared, err := t.root.rewrite(input, false, 0)
	if err == nil {
		err = json.Unmarshal(prepared, into)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, errNotJSON) || errors.Is(err, errTooDeep) {
		return err //nolint:wrapcheck // it is our own
	}
	if faults := t.Faults(input); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n- "))
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("/%s: the %s does not fit the type of the field", strings.ReplaceAll(e.Field, ".", "/"), e.Value)
	}
	return fmt.Errorf("the input does not fit the Go type: %w", err)
}

// Rejected returns the values of a valid input that their Go types reject, such as a text
// that is not a UUID. The schema cannot describe such types completely.
func (t *Type) Rejected(input []byte) []string {
	if !t.rejects && (!t.numbers || !hasLargeNumber(input)) {
		return nil
	}
	err := t.Decode(input, reflect.New(t.goType).Interface())
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n- ")
}

// Faults returns one fault for each value that its Go type rejects, with a JSON pointer. The
// input may be invalid in other ways too. Faults does not report values of the wrong JSON
// type, because the schema describes them.
func (t *Type) Faults(input []byte) []string {
	var value any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber() // a float64 would change large numbers
	if d.Decode(&value) != nil {
		return nil
	}
	return t.root.refuses(value, "", nil)
}

// hasLargeNumber reports whether the input may have a number that does not fit into 64 bits
// or into a float32: one with 19 digits or with an exponent. A text that looks like such a
// number counts too.
func hasLargeNumber(input []byte) bool {
	digits := 0
	for _, b := range input {
		switch {
		case b >= '0' && b <= '9':
			if digits++; digits >= 19 {
				return true
			}
		case (b == 'e' || b == 'E') && digits > 0:
			return true
		default:
			digits = 0
		}
	}
	return false
}

// DropNulls removes properties that are null and not required, because they count as
// absent.
func (t *Type) DropNulls(value any) { t.root.dropNulls(value) }

func (n *node) dropNulls(value any) {
	if n == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if n.fields[name] != nil && inner == nil && !n.required[name] {
				delete(v, name)
				continue
			}
			n.below([]byte(name)).dropNulls(inner)
		}
	case []any:
		for _, item := range v {
			n.elem.dropNulls(item)
		}
	}
}

// refuses appends a fault for each value that its Go type rejects.
func (n *node) refuses(value any, at string, faults []string) []string {
	if n == nil || value == nil {
		return faults
	}
	if why := n.rejects(value); why != "" {
		return append(faults, at+": "+why)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if why := n.rejectsKey(name); why != "" {
				faults = append(faults, fmt.Sprintf("%s: the key %q is rejected: %s", at, name, why))
			}
			faults = n.below([]byte(name)).refuses(v[name], at+"/"+pointerEscapes.Replace(name), faults)
		}
	case []any:
		for i := range v {
			faults = n.elem.refuses(v[i], fmt.Sprint(at, "/", i), faults)
		}
	}
	return faults
}

// rejects returns why the Go type rejects a value, or "".
func (n *node) rejects(value any) string {
	text, isText := value.(string)
	number, isNumber := value.(json.Number)
	switch {
	case n.duration && isText:
		if _, err := time.ParseDuration(text); err != nil {
			return fmt.Sprintf("%q is not a duration: write it as 90s or 1h30m", text)
		}
	case n.number != nil && isNumber:
		literal := cmp.Or(whole(string(number)), string(number))
		if json.Unmarshal([]byte(literal), reflect.New(n.number).Interface()) != nil {
			return fmt.Sprintf("the number %s does not fit the type of the field", number)
		}
	case n.decodes != nil:
		data, err := json.Marshal(value)
		if err == nil {
			err = json.Unmarshal(data, reflect.New(n.decodes).Interface())
		}
		switch {
		case err != nil && n.decodes == timeType:
			return fmt.Sprintf("%s is rejected: write a time as 2026-01-31T15:04:05Z", data)
		case err != nil:
			return fmt.Sprintf("%s is rejected: %v", data, err)
		}
	}
	return ""
}

// rejectsKey returns why the key type of a map rejects a key, or "".
func (n *node) rejectsKey(name string) string {
	if n.keys == nil {
		return ""
	}
	data, err := json.Marshal(map[string]struct{}{name: {}})
	if err == nil {
		err = json.Unmarshal(data, reflect.New(reflect.MapOf(n.keys, reflect.TypeFor[struct{}]())).Interface())
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "it does not fit the type " + n.keys.Kind().String()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// pointerEscapes escapes a name for a JSON pointer.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

var timeType = reflect.TypeFor[time.Time]()
