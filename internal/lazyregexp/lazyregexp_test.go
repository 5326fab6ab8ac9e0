package lazyregexp_test

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// Every method does what the method of the standard library with its name does.
func TestMethods(t *testing.T) {
	t.Parallel()
	const expression, text = `(\w)(\d+)`, "a1 b22 c333"
	ours, theirs := reflect.ValueOf(lazyregexp.New(expression)), reflect.ValueOf(regexp.MustCompile(expression))
	for i := range ours.NumMethod() {
		name := ours.Type().Method(i).Name
		var args []reflect.Value
		for in := range ours.Method(i).Type().Ins() {
			switch in.Kind() {
			case reflect.String:
				args = append(args, reflect.ValueOf(text))
			case reflect.Int:
				args = append(args, reflect.ValueOf(2))
			case reflect.Slice:
				args = append(args, reflect.ValueOf([]byte(text)))
			case reflect.Func:
				args = append(args, reflect.ValueOf(func(s string) string { return "<" + s + ">" }))
			default:
				t.Fatalf("%s takes a %s: add one here", name, in)
			}
		}
		got, want := ours.Method(i).Call(args)[0].Interface(), theirs.MethodByName(name).Call(args)[0].Interface()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s returns %v, want %v", name, got, want)
		}
	}
}

// In a test, an invalid expression is found at once.
func TestInvalid(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("New accepts an invalid expression")
		}
	}()
	lazyregexp.New("(")
}
