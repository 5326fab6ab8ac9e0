package typeschema_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/internal/typeschema"
)

// The error names the Go field and says what to write instead.
//
// SPEC T-14, T-15
func TestTypesThatCannotBeDescribed(t *testing.T) {
	t.Parallel()
	type inner struct {
		List []struct{ F func() } `json:"list"`
	}
	for _, test := range []struct {
		typ  reflect.Type
		want []string
	}{
		{reflect.TypeFor[inner](), []string{"inner.List[].F: ", `leave the field out with the tag json:"-"`}},
		{reflect.TypeFor[struct{ C chan int }](), []string{"the input.C: ", `leave the field out with the tag json:"-"`}},
		{reflect.TypeFor[struct{ E error }](), []string{".E: ", "use a concrete type"}},
		{reflect.TypeFor[struct{ M map[bool]int }](), []string{".M: ", "use a map with string keys"}},
		{reflect.TypeFor[struct{ S secretive }](), []string{".S: ", "give it a method JSONSchema() map[string]any", "NewRawTool"}},
		{reflect.TypeFor[struct {
			N int `json:"n" required:"false"`
		}](), []string{".N: ", `required:"false"`, "omitempty"}},
		{reflect.TypeFor[struct {
			N int `json:"n" required:"true" default:"1"`
		}](), []string{".N: ", "a required field cannot have a default"}},
		{reflect.TypeFor[struct {
			N int `json:"n" minimum:"x"`
		}](), []string{".N: ", `minimum:"x"`, "write a number"}},
		{reflect.TypeFor[struct {
			N string `minimum:"1"`
		}](), []string{".N: ", "not a number", "remove the tag"}},
		{reflect.TypeFor[struct {
			N int `minLength:"1"`
		}](), []string{".N: ", "not a string", "remove the tag"}},
		{reflect.TypeFor[struct {
			N int `pattern:"^1$"`
		}](), []string{".N: ", "not a string", "remove the tag"}},
		{reflect.TypeFor[struct {
			N string `maxItems:"1"`
		}](), []string{".N: ", "not an array", "remove the tag"}},
		{reflect.TypeFor[struct {
			N []int `maxItems:"-1"`
		}](), []string{".N: ", `maxItems:"-1"`, "write a whole number, 0 or more"}},
		{reflect.TypeFor[struct {
			N int `enum:"1,two"`
		}](), []string{".N: ", `enum:"1,two"`, "write JSON"}},
		{reflect.TypeFor[struct {
			N int `default:"eleven"`
		}](), []string{".N: ", `default:"eleven"`, "write JSON"}},
		{reflect.TypeFor[struct {
			N int `json:"n" default:"11" maximum:"10"`
		}](), []string{".N: ", `default:"11"`, "maximum", "change the default or the rule"}},
		{reflect.TypeFor[struct {
			In struct {
				N string `default:"c" enum:"a,b"`
			}
		}](), []string{".In.N: ", `default:"c"`, "enum", "change the default or the rule"}},
		{reflect.TypeFor[struct {
			N string `json:"n" pattern:"("`
		}](), []string{".N: ", `pattern:"("`, "missing closing )", "correct the regular expression"}},
		{reflect.TypeFor[struct {
			N []string `pattern:"("`
		}](), []string{".N: ", `pattern:"("`, "correct the regular expression"}},
		{reflect.TypeFor[struct{ *hidden }](), []string{"embedded pointer", "embed the struct itself"}},
		{reflect.TypeFor[struct {
			D time.Duration `minimum:"5"`
		}](), []string{".D: ", "check the value in your function"}},
		{reflect.TypeFor[struct {
			At time.Time `json:"at,omitzero" default:"tomorrow"`
		}](), []string{".At: ", `default:"tomorrow"`, "write a default that the type accepts"}},
		{reflect.TypeFor[struct{ P Panics }](), []string{".P: ", "JSONSchema panics", "correct the method"}},
	} {
		_, err := typeschema.For(test.typ)
		if err == nil {
			t.Errorf("%s is described", test.typ)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", test.typ, err, want)
			}
		}
	}
}

// Other libraries write rules into the jsonschema tag. Here that tag is the description. A
// rule that would not be checked is an error, which says how to write it here.
//
// SPEC T-15
func TestTagsOfOtherLibraries(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		`jsonschema:"required"`:                                          "remove the tag: a field is required unless its json tag says omitempty",
		`jsonschema:"required,enum=low,enum=high"`:                       `write enum:"low,high" instead`,
		`jsonschema:"enum=low,enum=high,default=low"`:                    `write enum:"low,high" default:"low" instead`,
		`jsonschema:"description=how urgent,minLength=3,maxLength=8"`:    `write jsonschema:"how urgent" minLength:"3" maxLength:"8" instead`,
		`jsonschema:"title=Urgency,description=how urgent, in one word"`: `write jsonschema:"how urgent, in one word" instead`,
		`jsonschema:"pattern=^[a-z]+$"`:                                  `write pattern:"^[a-z]+$" instead`,
		`jsonschema:"minimum=1,exclusiveMaximum=5"`:                      "give the type a method JSONSchema() map[string]any with exclusiveMaximum",
		`jsonschema_description:"how urgent"`:                            `write jsonschema:"how urgent" instead`,
		`jsonschema_extras:"a=b"`:                                        "JSONSchema() map[string]any",
		`exclusiveMinimum:"0"`:                                           "give the type a method JSONSchema() map[string]any with exclusiveMinimum",
		`minlength:"3"`:                                                  `write minLength:"3" instead`,
		`jsonschema:"how urgent, such as low"`:                           "",
		`jsonschema:"required, if there is no id"`:                       "",
		`jsonschema:"a filter such as size=1, color=red"`:                "",
		`jsonschema:"low, normal,high"`:                                  "",
		`validate:"required,min=3" db:"urgency" jsonschema:"how urgent"`: "",
	} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "Urgency", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(tag)}})
		switch _, err := typeschema.For(typ); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", tag, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), "the input.Urgency: ") || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", tag, err, want)
		}
	}
}

// Defaults inside a struct apply too if the struct is absent, because its zero value would be
// wrong without a word. They do not apply to a pointer, which is nil then, nor to a struct
// with required fields, which the filled object would lack.
//
// SPEC T-15
func TestDefaultsInsideAnAbsentStruct(t *testing.T) {
	t.Parallel()
	type size struct {
		Unit  string `json:"unit,omitempty" default:"cm"`
		Width int    `json:"width,omitempty" default:"10"`
	}
	type box struct {
		Size  size   `json:"size,omitzero"`
		Color string `json:"color,omitempty" default:"red"`
	}
	type price struct {
		Cents    int    `json:"cents"`
		Currency string `json:"currency,omitempty" default:"EUR"`
	}
	type plain struct {
		Text string `json:"text,omitempty"`
	}
	type in struct {
		Box    box            `json:"box,omitzero"`
		Maybe  *box           `json:"maybe,omitempty"`
		Price  price          `json:"price,omitzero"`
		Plain  plain          `json:"plain,omitzero"`
		Boxes  []box          `json:"boxes,omitempty"`
		ByName map[string]box `json:"by_name,omitempty"`
		At     time.Time      `json:"at,omitzero"`
		Given  size           `json:"given,omitzero" default:"{\"unit\":\"mm\"}"`
		Twin   [1]size        `json:"twin,omitempty"`
	}
	usual := box{size{"cm", 10}, "red"}
	typ, schema := compile(t, reflect.TypeFor[in]())
	for _, test := range []struct {
		input, filled string
		want          in
	}{
		{`{}`, `{"given":{"unit":"mm","width":10},"box":{"color":"red","size":{"unit":"cm","width":10}}}`, in{Box: usual, Given: size{"mm", 10}}},
		{`{"box":null,"given":{}}`, `{"box":{"color":"red","size":{"unit":"cm","width":10}},"given":{"unit":"cm","width":10}}`, in{Box: usual, Given: size{"cm", 10}}},
		{`{"box":{"size":{"width":3}},"maybe":{},"given":{}}`, "", in{Box: box{size{"cm", 3}, "red"}, Maybe: &usual, Given: size{"cm", 10}}},
		{`{"boxes":[{}],"by_name":{"a":{}},"price":{"cents":5},"given":{}}`, "", in{Box: usual, Boxes: []box{usual}, ByName: map[string]box{"a": usual}, Price: price{5, "EUR"}, Given: size{"cm", 10}}},
	} {
		if err := accepts(typ, schema, test.input); err != nil {
			t.Errorf("%s: %v", test.input, err)
			continue
		}
		filled, err := typ.Fill([]byte(test.input))
		if err != nil || test.filled != "" && string(filled) != test.filled {
			t.Errorf("%s is filled to %s, %v, want %s", test.input, filled, err, test.filled)
		}
		for _, input := range []string{test.input, string(filled)} {
			if err := accepts(typ, schema, input); err != nil {
				t.Errorf("%s: the schema does not accept it: %v", input, err)
			}
			var got in
			if err := typ.Decode([]byte(input), &got); err != nil {
				t.Errorf("%s: %v", input, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", input, diff)
			}
		}
	}
}
