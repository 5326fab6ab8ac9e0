package typeschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Decode decodes an input that the schema accepts. Defaults replace absent and null values.
// Durations can be written as 1h30m, and whole numbers as 5.0. An error has the position as
// a JSON pointer.
func (t *Type) Decode(input []byte, into any) error {
	if !t.root.prepares && !bytes.Contains(input, []byte("null")) { // null means absent, for every type
		err := json.Unmarshal(input, into)
		if err == nil {
			return nil
		}
		reflect.ValueOf(into).Elem().SetZero()
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	t.root.dropNulls(value)
	value, err := t.root.prepare(value, "")
	if err != nil {
		return err
	}
	if input, err = json.Marshal(value); err != nil {
		return fmt.Errorf("it has no JSON form: %w", err)
	}
	if err = json.Unmarshal(input, into); err == nil {
		return nil
	}
	if fault := t.root.refuses(value, ""); fault != nil {
		return fault
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("/%s: the %s does not fit", strings.ReplaceAll(e.Field, ".", "/"), e.Value)
	}
	return fmt.Errorf("it does not fit: %w", err)
}

// DropNulls removes properties that are null and not required: they count as
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
			n.below(name).dropNulls(inner)
		}
	case []any:
		for _, item := range v {
			n.elem.dropNulls(item)
		}
	}
}

// prepare rewrites a value so that encoding/json can decode it. at is its
// position.
func (n *node) prepare(value any, at string) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		return v, n.prepareObject(v, at)
	case []any:
		for i := range v {
			if n.elem == nil {
				break
			}
			item, err := n.elem.prepare(v[i], fmt.Sprint(at, "/", i))
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
	case string:
		if n.duration {
			took, err := time.ParseDuration(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is not a duration: write it as 90s or 1h30m", at, v)
			}
			return int64(took), nil
		}
	case json.Number:
		if n.integer || n.duration {
			return whole(v), nil
		}
	}
	return value, nil
}

// prepareObject prepares the values of an object, and fills in defaults.
func (n *node) prepareObject(v map[string]any, at string) error {
	for name, value := range n.defaults {
		if v[name] != nil {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(value))
		d.UseNumber()
		var filled any
		if err := d.Decode(&filled); err != nil {
			return fmt.Errorf("%s/%s: its default: %w", at, name, err)
		}
		v[name] = filled
	}
	for name, inner := range v {
		below := n.below(name)
		if below == nil {
			continue
		}
		prepared, err := below.prepare(inner, at+"/"+name)
		if err != nil {
			return err
		}
		v[name] = prepared
	}
	return nil
}

// below returns the type of a property.
func (n *node) below(name string) *node {
	if f := n.fields[name]; f != nil {
		return f
	}
	return n.elem
}

// refuses finds the first value that its type rejects.
func (n *node) refuses(value any, at string) error {
	if n == nil || value == nil {
		return nil
	}
	if n.decodes != nil {
		data, err := json.Marshal(value)
		if err == nil {
			err = json.Unmarshal(data, reflect.New(n.decodes).Interface())
		}
		if err != nil {
			return fmt.Errorf("%s: %s is rejected: %w", at, data, err)
		}
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := n.below(name).refuses(v[name], at+"/"+name); err != nil {
				return err
			}
		}
	case []any:
		for i := range v {
			if err := n.elem.refuses(v[i], fmt.Sprint(at, "/", i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole writes a number such as 5.0 or 1e3 as Go reads integers.
func whole(n json.Number) any {
	if !strings.ContainsAny(string(n), ".eE") {
		return n
	}
	if f, err := n.Float64(); err != nil || math.Abs(f) > 1<<64 {
		return n
	}
	exact, ok := new(big.Rat).SetString(string(n)) // a float64 would round large ones
	if !ok || !exact.IsInt() {
		return n
	}
	return json.Number(exact.Num().String())
}
