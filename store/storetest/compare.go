package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// rounding is the maximum difference between a stored time and the original, because SQL
// databases keep microseconds.
const rounding = time.Microsecond

// same asserts that a value that was read equals the stored value, field by field.
func same(t testing.TB, what string, want, got any) {
	t.Helper()
	var found differences
	found.compare(what, reflect.ValueOf(want), reflect.ValueOf(got))
	if len(found) > 0 {
		t.Errorf("the read value differs from the stored one:\n  %s", strings.Join(found, "\n  "))
	}
}

// differences describes where two values differ.
type differences []string

func (d *differences) add(path string, want, got any) {
	*d = append(*d, fmt.Sprintf("%s is %s, want %s", path, brief(got), brief(want)))
}

// brief renders a value in one line.
func brief(v any) string {
	var text string
	switch v := v.(type) {
	case string:
		text = fmt.Sprintf("%q", v)
	case json.RawMessage:
		text = string(v)
	case []byte:
		text = fmt.Sprintf("%d bytes from %x", len(v), v[:min(len(v), 8)])
	default:
		text = fmt.Sprintf("%+v", v)
	}
	if len(text) > 160 {
		text = fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:120], ""), len(text))
	}
	return text
}

// compare compares exported fields at any depth. A nil slice equals an empty slice. A nil
// pointer does not equal a pointer to an empty value.
func (d *differences) compare(path string, want, got reflect.Value) {
	if want.IsValid() != got.IsValid() {
		d.add(path, want, got)
		return
	}
	if !want.IsValid() || d.compareSpecial(path, want, got) {
		return
	}
	switch want.Kind() {
	case reflect.Pointer, reflect.Interface:
		if want.IsNil() || got.IsNil() {
			if want.IsNil() != got.IsNil() {
				d.add(path, orNil(want), orNil(got))
			}
			return
		}
		d.compare(path, want.Elem(), got.Elem())
	case reflect.Struct:
		for i := range want.NumField() {
			if field := want.Type().Field(i); field.IsExported() {
				d.compare(path+"."+field.Name, want.Field(i), got.Field(i))
			}
		}
	case reflect.Slice:
		if want.Len() != got.Len() {
			d.add(path+"'s length", want.Len(), got.Len())
			return
		}
		for i := range want.Len() {
			d.compare(fmt.Sprintf("%s[%d]", path, i), want.Index(i), got.Index(i))
		}
	case reflect.Map:
		if want.Len() != got.Len() {
			d.add(path+"'s length", want.Len(), got.Len())
			return
		}
		for key, value := range want.Seq2() {
			d.compare(fmt.Sprintf("%s[%v]", path, key), value, got.MapIndex(key))
		}
	default:
		if !want.Equal(got) {
			d.add(path, want.Interface(), got.Interface())
		}
	}
}

// orNil returns the value of a pointer, or "nil", for an error message.
func orNil(v reflect.Value) any {
	if v.IsNil() {
		return "nil"
	}
	return v.Elem().Interface()
}

// compareSpecial compares types for which comparing the fields is wrong. It returns false
// for other types.
func (d *differences) compareSpecial(path string, want, got reflect.Value) bool {
	switch w := want.Interface().(type) {
	case time.Time:
		if g := got.Interface().(time.Time); w.IsZero() != g.IsZero() || w.Sub(g).Abs() > rounding {
			d.add(path, w, g)
		}
	case json.RawMessage:
		if g := got.Interface().(json.RawMessage); !sameJSON(w, g) {
			d.add(path, w, g)
		}
	case []byte:
		if g := got.Bytes(); !bytes.Equal(w, g) {
			d.add(path, w, g)
		}
	case json.Marshaler: // the fields are unexported, so compare the JSON
		if want.Kind() == reflect.Pointer {
			return false
		}
		a, b := encoded(w), encoded(got.Interface())
		if !sameJSON(a, b) {
			d.add(path, a, b)
		}
	default:
		return false
	}
	return true
}

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("cannot be encoded: " + err.Error())
	}
	return text
}

// sameJSON compares JSON token by token. The order of keys and the spelling of numbers must
// be the same. White space and escapes may differ.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := json.NewDecoder(bytes.NewReader(a)), json.NewDecoder(bytes.NewReader(b))
	x.UseNumber()
	y.UseNumber()
	for {
		v, errV := x.Token()
		w, errW := y.Token()
		switch {
		case errors.Is(errV, io.EOF) && errors.Is(errW, io.EOF):
			return true
		case errV != nil || errW != nil || v != w:
			return false
		}
	}
}
