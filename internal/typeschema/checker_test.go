package typeschema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/internal/strictjson"
	"github.com/belay-run/belay/internal/typeschema"
)

// order is a typical input of a tool.
type order struct {
	ID       string        `json:"id" pattern:"^ord_[0-9]+$"`
	Amount   int           `json:"amount" minimum:"1" maximum:"1000"`
	Reason   string        `json:"reason" enum:"damaged,late,lost"`
	Note     string        `json:"note,omitempty" maxLength:"20"`
	Wait     time.Duration `json:"wait,omitempty"`
	Limit    int           `json:"limit,omitempty" default:"10"`
	Customer struct {
		Email string   `json:"email"`
		Tags  []string `json:"tags,omitempty" maxItems:"3"`
	} `json:"customer"`
}

const ordinary = `{"id":"ord_1","amount":42,"reason":"late","note":"a cup broke","customer":{"email":"a@example.com","tags":["gold"]}}`

// valid validates an input as an agent does when the checker does not accept it.
func valid(schema *jsonschema.Resolved, typ *typeschema.Type, input []byte) bool {
	var value any
	if json.Unmarshal(input, &value) != nil {
		return false
	}
	object, ok := value.(map[string]any)
	if !ok || strictjson.Ambiguous(input, value) {
		return false
	}
	if typ != nil {
		typ.DropNulls(object)
	}
	return schema.Validate(object) == nil
}

// The checker accepts ordinary inputs. It accepts nothing that the validator refuses.
//
// SPEC T-17
func TestCheckerAcceptsOrdinaryInputs(t *testing.T) {
	t.Parallel()
	typ, schema := compile(t, reflect.TypeFor[order]())
	for _, test := range []struct {
		input  string
		accept bool
	}{
		{ordinary, true},
		{" { \"amount\" : 1 , \"id\":\"ord_2\",\n\"reason\":\"lost\",\"customer\":{\"email\":\"\\u00e9\\n\"}}\t", true},
		{strings.Replace(ordinary, `"a cup broke"`, "null", 1), true},
		{strings.Replace(ordinary, "42", "42.0", 1), true},
		{strings.Replace(ordinary, "42", "4.2e1", 1), true},
		{strings.Replace(ordinary, "42", "4.2", 1), false},
		{strings.Replace(ordinary, "42", "0", 1), false},
		{strings.Replace(ordinary, "42", "1001", 1), false},
		{strings.Replace(ordinary, "42", "042", 1), false},
		{strings.Replace(ordinary, "42", "-", 1), false},
		{strings.Replace(ordinary, "42", "1e999", 1), false},
		{strings.Replace(ordinary, "42", `"42"`, 1), false},
		{strings.Replace(ordinary, "42", "null", 1), false},
		{strings.Replace(ordinary, "late", "soon", 1), false},
		{strings.Replace(ordinary, "ord_1", "ord_x", 1), false},
		{strings.Replace(ordinary, "a cup broke", "a cup broke, and a plate did too", 1), false},
		{strings.Replace(ordinary, `["gold"]`, `["a","b","c","d"]`, 1), false},
		{strings.Replace(ordinary, `["gold"]`, `["a",]`, 1), false},
		{strings.Replace(ordinary, `"amount":42`, `"amount":42,"amount":43`, 1), false},
		{strings.Replace(ordinary, `"amount":42`, `"amount":42,"Amount":43`, 1), false},
		{strings.Replace(ordinary, `"amount":42,`, "", 1), false},
		{strings.Replace(ordinary, `"email":"a@example.com",`, "", 1), false},
		{strings.Replace(ordinary, `"amount":42`, `"amount":42,"more":1`, 1), false},
		{ordinary + "x", false},
		{ordinary + "\x00", false},
		{ordinary[:len(ordinary)-1], false},
		{"", false},
		{"[]", false},
		{"null", false},
	} {
		got := typ.Checker.Accepts([]byte(test.input))
		if got != test.accept {
			t.Errorf("%s: the checker says %v", test.input, got)
		}
		if got && !valid(schema, typ, []byte(test.input)) {
			t.Errorf("%s: the checker accepts what the validator refuses", test.input)
		}
	}
}

// schemas are schemas as people write them for raw tools.
var schemas = []string{
	`{"type":"object"}`,
	`{"type":"object","properties":{"path":{"type":"string"},"n":{"type":["integer","null"],"minimum":0,"exclusiveMaximum":10}},"required":["path"]}`,
	`{"type":"object","additionalProperties":{"type":"number"},"propertyNames":{"pattern":"^[a-z]+$"}}`,
	`{"type":"object","properties":{"a":{"enum":["x",1,true,null]},"b":{"const":"y"},"c":{"$ref":"#/$defs/c"}},"additionalProperties":false,"$defs":{"c":{"type":"object","properties":{"c":{"anyOf":[{"$ref":"#/$defs/c"},{"type":"null"}]},"l":{"type":"array","items":{"$ref":"#/$defs/c"}}}}}}`,
	`{"type":"object","properties":{"s":{"type":"string","minLength":2,"maxLength":3},"t":{"anyOf":[{"type":"string","enum":["x"]},{"type":"null"}]}}}`,
	`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`,
	`{"type":"object","properties":{"n":{"multipleOf":3}}}`,
	`{"type":"object","minProperties":1}`,
}

// The validator accepts everything that the checker accepts, for typed tools and for raw
// tools.
//
// SPEC T-17
func FuzzChecker(f *testing.F) {
	for _, seed := range []string{
		ordinary, `{}`, `{"path":"a","n":3}`, `{"path":"a","n":null,"Path":"b"}`, `{"a":1,"b":2.5}`, `{"a":"x","b":"y","c":{"c":{"c":null},"l":[{},{"l":[]}]}}`, `{"a":true}`,
		`{"s":"ab","t":null}`, `{"s":"\u00e9é","t":"x"}`, `{"n":3}`, `{"a":{"a":1,"A":2}}`, `{"k":1,"K":2}`, `{"x":"\ud800"}`, `{"id":"ord_1","limit":null}`,
	} {
		f.Add([]byte(seed))
	}
	typ, typed := compile(f, reflect.TypeFor[order]())
	type pair struct {
		checker *typeschema.Checker
		schema  *jsonschema.Resolved
		typ     *typeschema.Type
	}
	pairs := []pair{{typ.Checker, typed, typ}}
	for i, text := range schemas {
		var schema jsonschema.Schema
		if err := json.Unmarshal([]byte(text), &schema); err != nil {
			f.Fatal(err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			f.Fatal(err)
		}
		checker := typeschema.Compile([]byte(text), false)
		if known := i < 3 || i == 4; known && checker == nil {
			f.Fatalf("%s has no checker", text)
		}
		pairs = append(pairs, pair{checker, resolved, nil})
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		for i, p := range pairs {
			if p.checker.Accepts(input) && !valid(p.schema, p.typ, input) {
				t.Errorf("schema %d: the checker accepts %q, and the validator does not", i-1, input)
			}
		}
	})
}

// Validating a call does not allocate, and decoding allocates no more than encoding/json.
// For compiles the schema once, not for each call.
//
// SPEC T-17
func TestValidatingDoesNotAllocate(t *testing.T) { //nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
	typ, _ := compile(t, reflect.TypeFor[order]())
	input := []byte(strings.Replace(ordinary, `"note"`, `"limit":5,"wait":1,"note"`, 1))
	if n := testing.AllocsPerRun(100, func() {
		if !typ.Checker.Accepts(input) {
			t.Fatal("refused")
		}
	}); n > 0 {
		t.Errorf("validating allocates %v times", n)
	}
	floor := testing.AllocsPerRun(100, func() {
		var in order
		if err := json.Unmarshal(input, &in); err != nil {
			t.Fatal(err)
		}
	})
	if n := testing.AllocsPerRun(100, func() {
		var in order
		if err := typ.Decode(input, &in); err != nil {
			t.Fatal(err)
		}
	}); n > floor+2 {
		t.Errorf("decoding allocates %v times, and encoding/json %v times", n, floor)
	}
}

// Fill adds missing defaults. All other bytes stay the same.
//
// SPEC T-15
func TestFillKeepsTheBytes(t *testing.T) {
	t.Parallel()
	type in struct {
		Raw   json.RawMessage `json:"raw,omitempty"`
		Limit int             `json:"limit,omitempty" default:"10"`
		Name  *string         `json:"name,omitempty"`
		Level string          `json:"level,omitempty" default:"low"`
		Inner *struct {
			Wait time.Duration `json:"wait,omitempty" default:"5s"`
		} `json:"inner,omitempty"`
		Items []struct {
			N int `json:"n,omitempty" default:"1"`
		} `json:"items,omitempty"`
	}
	typ, err := typeschema.For(reflect.TypeFor[in]())
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		`{}`: `{"limit":10,"level":"low"}`,
		`{ "raw" : {"b":1, "a":"<\u003c>", "n":1.50} }`: `{ "raw" : {"b":1, "a":"<\u003c>", "n":1.50} ,"limit":10,"level":"low"}`,
		`{"limit":null,"level":"high"}`:                 `{"limit":10,"level":"high"}`,
		`{"limit":5,"level":"high"}`:                    `{"limit":5,"level":"high"}`,
		`{"name":null,"level":"x","limit":1e0}`:         `{"level":"x","limit":1e0}`,
		`{"limit":1, "name" : null, "level":"x"}`:       `{"limit":1, "level":"x"}`,
		`{"limit":1,"level":"x","name":null}`:           `{"limit":1,"level":"x"}`,
		`{"limit":1,"level":"x","raw":[null]}`:          `{"limit":1,"level":"x","raw":[null]}`,
		`{"limit":1,"level":"x","inner":{}}`:            `{"limit":1,"level":"x","inner":{"wait":"5s"}}`,
		`{"limit":1,"level":"x","items":[{},{"n":2}]}`:  `{"limit":1,"level":"x","items":[{"n":1},{"n":2}]}`,
		`{"l\u0069mit":1,"level":"x"}`:                  `{"l\u0069mit":1,"level":"x"}`,
	} {
		got, err := typ.Fill([]byte(input))
		if err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v, want %s", input, got, err, want)
		}
	}
	var got in
	if err := typ.Decode([]byte(`{"name":null,"raw":{"b":1, "a":"<\u003c>", "n":1.50},"inner":{"wait":null},"level":null}`), &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Raw) != `{"b":1, "a":"<\u003c>", "n":1.50}` || got.Limit != 10 || got.Level != "low" || got.Inner.Wait != 5*time.Second {
		t.Errorf("decoded is %+v, raw %s", got, got.Raw)
	}
}

// Properties that are null are removed at every position, and the rest is valid JSON.
//
// SPEC T-14
func TestNullsAreAbsent(t *testing.T) {
	t.Parallel()
	type in struct {
		A, B, C json.RawMessage `json:",omitempty"` //nolint:tagliatelle // short
	}
	typ, err := typeschema.For(reflect.TypeFor[in]())
	if err != nil {
		t.Fatal(err)
	}
	for mask := range 8 {
		var parts, want []string
		for i, name := range []string{"A", "B", "C"} {
			if mask&(1<<i) != 0 {
				parts = append(parts, `"`+name+`" : null`)
			} else {
				parts, want = append(parts, `"`+name+`": 1`), append(want, name)
			}
		}
		var got in
		if err := typ.Decode([]byte("{ "+strings.Join(parts, " , ")+" }"), &got); err != nil {
			t.Errorf("%v: %v", parts, err)
		}
		var have []string
		for name, raw := range map[string]json.RawMessage{"A": got.A, "B": got.B, "C": got.C} {
			if raw != nil {
				have = append(have, name)
			}
		}
		if len(have) != len(want) {
			t.Errorf("%v: %v are there, want %v", parts, have, want)
		}
	}
}

// chain is a type whose default contains itself without end.
type chain struct {
	Next *chain `json:"next,omitempty" default:"{}"`
}

// SPEC T-15
func TestADefaultWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := typeschema.For(reflect.TypeFor[chain]()); err == nil || !strings.Contains(err.Error(), "without end") {
		t.Errorf("the type is described: %v", err)
	}
}
