package typeschema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/belay-run/belay/internal/typeschema"
)

// Priority is an enum: an int in Go, a text in JSON.
type Priority int

var priorities = []string{"low", "normal", "high"}

func (p Priority) MarshalText() ([]byte, error) {
	if p < 0 || int(p) >= len(priorities) {
		return nil, errors.New("no such priority")
	}
	return []byte(priorities[p]), nil
}

func (p *Priority) UnmarshalText(text []byte) error {
	for i, name := range priorities {
		if name == string(text) {
			*p = Priority(i)
			return nil
		}
	}
	return errors.New("no such priority")
}

// JSONSchema lists the values.
func (Priority) JSONSchema() map[string]any { return map[string]any{"enum": priorities} }

// Point decodes its JSON itself.
type Point struct{ x, y int } //nolint:recvcheck // as types with both methods have it

func (p Point) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%d,%d"`, p.x, p.y), nil }

func (p *Point) UnmarshalJSON(data []byte) error {
	_, err := fmt.Sscanf(string(data), `"%d,%d"`, &p.x, &p.y)
	return err
}

// JSONSchema describes a point. It is needed because Point decodes its JSON itself, so its
// fields do not describe the JSON.
func (*Point) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^-?[0-9]+,-?[0-9]+$"}
}

// Panics is a type whose JSONSchema method panics.
type Panics string

// JSONSchema panics.
func (Panics) JSONSchema() map[string]any { panic("oh no") }

type secretive struct{ n int }

func (s *secretive) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &s.n) }

type tree struct {
	Name  string           `json:"name"`
	Left  *tree            `json:"left,omitempty"`
	Below []tree           `json:"below"`
	Named map[string]*tree `json:"named,omitempty"`
}

type page[T any] struct {
	Items []T      `json:"items"`
	Next  *page[T] `json:"next"`
}

type base struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

// Base is embedded.
type Base = base

type everything struct {
	base

	Name     string                     `json:"name"` // shadows the field of base
	Level    Priority                   `json:"level"`
	Levels   []Priority                 `json:"levels"`
	Where    Point                      `json:"where"`
	Addr     netip.Addr                 `json:"addr"`
	Raw      json.RawMessage            `json:"raw"`
	Data     []byte                     `json:"data"`
	At       time.Time                  `json:"at"`
	Wait     time.Duration              `json:"wait"`
	Waits    map[string][]time.Duration `json:"waits,omitempty"`
	Count    int8                       `json:"count"`
	Size     uint64                     `json:"size"`
	Ratio    float32                    `json:"ratio,omitempty"`
	Maybe    *int                       `json:"maybe"`
	ByID     map[int]string             `json:"by_id"`
	ByLevel  map[Priority]bool          `json:"by_level,omitempty"`
	Pair     [2]string                  `json:"pair"`
	Quoted   int64                      `json:"quoted,string"`
	Any      any                        `json:"any"`
	Big      *big.Int                   `json:"big,omitempty"`
	Tree     *tree                      `json:"tree,omitempty"`
	Page     page[base]                 `json:"page"`
	Skipped  func()                     `json:"-"`
	Untagged bool
}

func compile(t testing.TB, typ reflect.Type) (*typeschema.Type, *jsonschema.Resolved) {
	t.Helper()
	described, err := typeschema.For(typ)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(described.Schema) // this is the schema that the model gets
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return described, resolved
}

// accepts validates an input as an agent does.
func accepts(typ *typeschema.Type, schema *jsonschema.Resolved, input string) error {
	var value any
	if err := json.Unmarshal([]byte(input), &value); err != nil {
		return err
	}
	typ.DropNulls(value)
	return schema.Validate(value)
}

// The schema accepts the JSON that a type encodes to, and decoding gives the same value.
//
// SPEC T-14
func TestEveryKindOfType(t *testing.T) {
	t.Parallel()
	typ, schema := compile(t, reflect.TypeFor[everything]())
	five := 5
	for name, value := range map[string]everything{
		"zero": {Addr: netip.MustParseAddr("::1")},
		"full": {
			base: base{ID: 7}, Name: "n", Level: 2, Levels: []Priority{0, 1}, Where: Point{1, -2}, Addr: netip.MustParseAddr("10.0.0.1"), Raw: json.RawMessage(`{"a":[1]}`),
			Data: []byte("bytes"), At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Wait: time.Minute, Waits: map[string][]time.Duration{"x": {1, time.Hour}},
			Count: -128, Size: math.MaxUint64, Ratio: 0.5, Maybe: &five, ByID: map[int]string{-1: "a"}, ByLevel: map[Priority]bool{1: true}, Pair: [2]string{"a", "b"}, Quoted: -3,
			Any: []any{"x", nil, 1.5}, Big: big.NewInt(12), Tree: &tree{Name: "a", Left: &tree{Name: "b"}, Below: []tree{{Name: "c"}}, Named: map[string]*tree{"d": nil}},
			Page: page[base]{Items: []base{{ID: 1}}, Next: &page[base]{}}, Untagged: true,
		},
	} {
		data, err := json.Marshal(value) //nolint:musttag // a field without a tag is one of the cases
		if err != nil {
			t.Fatal(err)
		}
		if err := accepts(typ, schema, string(data)); err != nil {
			t.Errorf("%s: %s is refused: %v", name, data, err)
		}
		var got everything
		if err := typ.Decode(data, &got); err != nil {
			t.Errorf("%s: decode %s: %v", name, data, err)
		}
		again, err := json.Marshal(got) //nolint:musttag // as above
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s: decoded is %s, %v, want %s", name, again, err, data)
		}
	}
}

// SPEC T-14
func TestInputsThatModelsSend(t *testing.T) {
	t.Parallel()
	type in struct {
		Wait    time.Duration            `json:"wait,omitempty"`
		Waits   map[string]time.Duration `json:"waits,omitempty"`
		Level   Priority                 `json:"level,omitempty" default:"normal"`
		Count   int                      `json:"count" minimum:"1" maximum:"10" default:"3"`
		Tags    []string                 `json:"tags,omitempty" enum:"a,b" maxItems:"2"`
		Name    *string                  `json:"name" minLength:"2" pattern:"^[a-z]+$"`
		At      time.Time                `json:"at,omitzero"`
		Inner   *tree                    `json:"inner,omitempty" jsonschema:"a tree"`
		Needed  []int                    `json:"needed"`
		Verbose bool                     `json:"verbose,omitempty" default:"true"`
	}
	typ, schema := compile(t, reflect.TypeFor[in]())
	for _, test := range []struct {
		input string
		want  in // used if fault is empty
		fault string
	}{
		{`{"needed":[1]}`, in{Level: 1, Count: 3, Needed: []int{1}, Verbose: true}, ""},
		{`{"needed":[],"level":null,"count":null,"name":null,"inner":null,"verbose":false}`, in{Level: 1, Count: 3, Needed: []int{}}, ""},
		{`{"needed":null,"wait":"1h30m","waits":{"a":"2s","b":5},"count":5.0}`, in{Wait: 90 * time.Minute, Waits: map[string]time.Duration{"a": 2e9, "b": 5}, Level: 1, Count: 5, Verbose: true}, ""},
		{`{"needed":[1.0,2e1],"level":"high","tags":["a","b"]}`, in{Needed: []int{1, 20}, Level: 2, Count: 3, Tags: []string{"a", "b"}, Verbose: true}, ""},
		{`{"needed":[1],"level":"urgent"}`, in{}, "enum"},
		{`{"needed":[1],"count":11}`, in{}, "maximum"},
		{`{"needed":[1],"count":0}`, in{}, "minimum"},
		{`{"needed":[1],"count":1.5}`, in{}, "type"},
		{`{"needed":[1],"tags":["c"]}`, in{}, "enum"},
		{`{"needed":[1],"tags":["a","a","a"]}`, in{}, "maxItems"},
		{`{"needed":[1],"name":"X1"}`, in{}, "pattern"},
		{`{"needed":[1],"name":"x"}`, in{}, "minLength"},
		{`{"needed":[1],"wait":"soon"}`, in{}, "pattern"},
		{`{"needed":[null]}`, in{}, "type"},
		{`{}`, in{}, "required"},
		{`{"needed":[1],"more":1}`, in{}, "additional"},
		{`{"needed":[1],"inner":{"name":"a"}}`, in{}, "required"},
		{`{"needed":[1],"at":"tomorrow"}`, in{}, `/at: "tomorrow" is rejected`},
	} {
		err := accepts(typ, schema, test.input)
		var got in
		if err == nil {
			err = typ.Decode([]byte(test.input), &got)
		}
		switch {
		case test.fault == "" && err != nil:
			t.Errorf("%s: %v", test.input, err)
		case test.fault == "":
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.input, diff)
			}
		case err == nil || !strings.Contains(err.Error(), test.fault):
			t.Errorf("%s: %v, want %q", test.input, err, test.fault)
		}
	}
}

// A field with the tag required must be in the input, and must not be null.
//
// SPEC T-14
func TestRequiredFields(t *testing.T) {
	t.Parallel()
	type in struct {
		Pointer *int           `json:"pointer" required:"true"`
		Empty   string         `json:"empty,omitempty" required:"true"`
		List    []int          `json:"list" required:"true"`
		Map     map[string]int `json:"map" required:"true"`
		Free    *int           `json:"free"`
	}
	typ, schema := compile(t, reflect.TypeFor[in]())
	whole := map[string]string{"pointer": "0", "empty": `""`, "list": "[]", "map": "{}", "free": "null"}
	write := func(value map[string]string) string {
		var parts []string
		for name, v := range value {
			parts = append(parts, fmt.Sprintf("%q:%s", name, v))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	if err := accepts(typ, schema, write(whole)); err != nil {
		t.Error(err)
	}
	for name := range whole {
		absent, null := maps.Clone(whole), maps.Clone(whole)
		delete(absent, name)
		null[name] = "null"
		for _, input := range []map[string]string{absent, null} {
			if err := accepts(typ, schema, write(input)); (err == nil) != (name == "free") {
				t.Errorf("%s: %v", write(input), err)
			}
		}
	}
}

type hidden struct {
	ID int `json:"id"`
}

// Shown is embedded by pointer.
type Shown struct {
	ID int `json:"id"`
}

// Rules apply to every way to write a value, and to every value that a model can send.
//
// SPEC T-14, T-15
func TestRulesThatBind(t *testing.T) {
	t.Parallel()
	type in struct {
		*Shown

		Files  []string          `json:"files" minItems:"1"`
		Data   []byte            `json:"data,omitempty" minLength:"4"`
		Level  Priority          `json:"level,omitempty" enum:"low"`
		Wait   time.Duration     `json:"wait,omitempty"`
		Big    uint64            `json:"big,omitempty" default:"9007199254740993"`
		Count  int8              `json:"count,omitempty,string"`
		Large  *big.Int          `json:"large,omitempty"`
		Must   *string           `json:"must" required:"true"`
		Levels map[Priority]bool `json:"levels,omitempty"`
	}
	typ, schema := compile(t, reflect.TypeFor[in]())
	for _, test := range []struct {
		input string
		ok    bool
	}{
		{`{"files":["a"],"must":null}`, false},
		{`{"files":["a"],"must":"x"}`, true},
		{`{"files":["a"],"must":"x","id":3,"level":"low","wait":"1h0.5m","large":5.0}`, true},
		{`{"files":["a"]}`, false},
		{`{"files":null,"must":"x"}`, false},
		{`{"files":[],"must":"x"}`, false},
		{`{"files":["a"],"must":"x","level":"high"}`, false},
		{`{"files":["a"],"must":"x","wait":"00"}`, false},
		{`{"files":["a"],"must":"x","wait":"1h0"}`, false},
		{`{"files":["a"],"must":"x","count":"1.5"}`, false},
	} {
		err := accepts(typ, schema, test.input)
		var got in
		if err == nil {
			err = typ.Decode([]byte(test.input), &got)
		}
		if (err == nil) != test.ok || err == nil && got.Big != 9007199254740993 {
			t.Errorf("%s: %v, big %d", test.input, err, got.Big)
		}
	}
	for _, number := range []string{"9007199254740993.0", "1e19"} {
		var got in
		if err := typ.Decode([]byte(`{"files":["a"],"big":`+number+`}`), &got); err != nil || got.Big != 9007199254740993 && got.Big != 1e19 {
			t.Errorf("%s is read as %d, %v", number, got.Big, err)
		}
	}
}

// leaves are simple types with generators of their values.
var leaves = []struct {
	typ    reflect.Type
	values *rapid.Generator[any]
}{
	{reflect.TypeFor[string](), rapid.String().AsAny()},
	{reflect.TypeFor[bool](), rapid.Bool().AsAny()},
	{reflect.TypeFor[int](), rapid.Int().AsAny()},
	{reflect.TypeFor[int8](), rapid.Int8().AsAny()},
	{reflect.TypeFor[uint16](), rapid.Uint16().AsAny()},
	{reflect.TypeFor[uint64](), rapid.Uint64().AsAny()},
	{reflect.TypeFor[float64](), rapid.Float64Range(-1e9, 1e9).AsAny()},
	{reflect.TypeFor[Priority](), rapid.Map(rapid.IntRange(0, 2), func(i int) any { return Priority(i) })},
	{reflect.TypeFor[[]byte](), rapid.SliceOf(rapid.Byte()).AsAny()},
	{reflect.TypeFor[time.Duration](), rapid.Map(rapid.Int64(), func(n int64) any { return time.Duration(n) })},
	{reflect.TypeFor[time.Time](), rapid.Map(rapid.Int64Range(0, 1<<33), func(n int64) any { return time.Unix(n, 0).UTC() })},
	{reflect.TypeFor[Point](), rapid.Map(rapid.Int(), func(n int) any { return Point{n, -n} })},
	{reflect.TypeFor[json.RawMessage](), rapid.Just[any](json.RawMessage(`{"a":[1,null]}`))},
}

// shape is a random type, with a generator of its values.
type shape struct {
	typ   reflect.Type
	value func(t *rapid.T) reflect.Value
}

func drawShape(t *rapid.T, depth int) shape {
	kind := "leaf"
	if depth > 0 {
		kind = rapid.SampledFrom([]string{"leaf", "leaf", "pointer", "slice", "array", "map", "struct"}).Draw(t, "kind")
	}
	if kind == "leaf" {
		leaf := rapid.SampledFrom(leaves).Draw(t, "leaf")
		return shape{leaf.typ, func(t *rapid.T) reflect.Value { return reflect.ValueOf(leaf.values.Draw(t, "value")).Convert(leaf.typ) }}
	}
	if kind == "struct" {
		return drawStruct(t, depth)
	}
	inner := drawShape(t, depth-1)
	if k := inner.typ.Kind(); kind == "pointer" && (k == reflect.Slice || k == reflect.Map || k == reflect.Pointer) {
		return inner // encoding/json cannot distinguish a nil pointer from a pointer to nil
	}
	switch kind {
	case "pointer":
		typ := reflect.PointerTo(inner.typ)
		return shape{typ, func(t *rapid.T) reflect.Value {
			if rapid.Bool().Draw(t, "nil") {
				return reflect.Zero(typ)
			}
			p := reflect.New(inner.typ)
			p.Elem().Set(inner.value(t))
			return p
		}}
	case "array":
		typ := reflect.ArrayOf(2, inner.typ)
		return shape{typ, func(t *rapid.T) reflect.Value {
			v := reflect.New(typ).Elem()
			for i := range 2 {
				v.Index(i).Set(inner.value(t))
			}
			return v
		}}
	case "slice":
		typ := reflect.SliceOf(inner.typ)
		return shape{typ, func(t *rapid.T) reflect.Value {
			v := reflect.Zero(typ)
			for range rapid.IntRange(0, 3).Draw(t, "n") {
				v = reflect.Append(v, inner.value(t))
			}
			return v
		}}
	default:
		typ := reflect.MapOf(reflect.TypeFor[string](), inner.typ)
		return shape{typ, func(t *rapid.T) reflect.Value {
			if rapid.Bool().Draw(t, "nil") {
				return reflect.Zero(typ)
			}
			v := reflect.MakeMap(typ)
			for i := range rapid.IntRange(0, 3).Draw(t, "n") {
				v.SetMapIndex(reflect.ValueOf(strconv.Itoa(i)), inner.value(t))
			}
			return v
		}}
	}
}

func drawStruct(t *rapid.T, depth int) shape {
	var fields []reflect.StructField
	var inner []shape
	for i := range rapid.IntRange(0, 4).Draw(t, "fields") {
		s := drawShape(t, depth-1)
		option := rapid.SampledFrom([]string{"", ",omitempty", ",omitzero"}).Draw(t, "option")
		fields = append(fields, reflect.StructField{
			Name: "F" + strconv.Itoa(i), Type: s.typ, Tag: reflect.StructTag(`json:"f` + strconv.Itoa(i) + option + `" jsonschema:"a field"`),
		})
		inner = append(inner, s)
	}
	typ := reflect.StructOf(fields)
	return shape{typ, func(t *rapid.T) reflect.Value {
		v := reflect.New(typ).Elem()
		for i, s := range inner {
			v.Field(i).Set(s.value(t))
		}
		return v
	}}
}

// For random types and values, the schema accepts the encoded value, and decoding gives the
// same value. If the schema still accepts the JSON after a random change, Go can decode it
// too.
//
// SPEC T-14, T-17
func TestRandomTypes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawStruct(t, 3)
		typ, err := typeschema.For(s.typ)
		if err != nil {
			t.Fatalf("%s: %v", s.typ, err)
		}
		schema, err := typ.Schema.CloneSchemas().Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(s.value(t).Interface())
		if err != nil {
			t.Fatal(err)
		}
		if err := accepts(typ, schema, string(data)); err != nil {
			t.Fatalf("%s: %s is refused: %v", s.typ, data, err)
		}
		got := reflect.New(s.typ)
		if err := typ.Decode(data, got.Interface()); err != nil {
			t.Fatalf("%s: decode %s: %v", s.typ, data, err)
		}
		want := reflect.New(s.typ)
		if err := json.Unmarshal(data, want.Interface()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Interface(), got.Interface(), cmp.AllowUnexported(Point{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s: %s decodes otherwise than with encoding/json:\n%s", s.typ, data, diff)
		}
		var value any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber() // keep large numbers unchanged
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		changed, err := json.Marshal(change(t, value))
		if err != nil {
			t.Fatal(err)
		}
		for _, input := range [][]byte{data, changed} {
			if typ.Checker.Accepts(input) && accepts(typ, schema, string(input)) != nil {
				t.Fatalf("%s: the checker accepts %s, and the validator does not", s.typ, input)
			}
		}
		if accepts(typ, schema, string(changed)) != nil {
			return
		}
		err = typ.Decode(changed, reflect.New(s.typ).Interface())
		if err != nil && !strings.Contains(err.Error(), "is rejected") {
			t.Fatalf("%s: the schema accepts %s, which does not decode: %v", s.typ, changed, err)
		}
		if rejected := typ.Rejected(changed); (rejected != nil) != (err != nil) {
			t.Fatalf("%s: %s decodes with the error %v, but Rejected returns %q", s.typ, changed, err, rejected)
		}
	})
}

// change replaces a random part of a value.
func change(t *rapid.T, value any) any {
	other := rapid.SampledFrom([]any{nil, "x", "1h", 1.0, -1.0, 300.0, 1.5, true, []any{}, map[string]any{}, []any{nil}}).Draw(t, "other")
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if rapid.Bool().Draw(t, "here") {
				if rapid.Bool().Draw(t, "deeper") {
					v[key] = change(t, v[key])
				} else {
					v[key] = other
				}
			}
		}
		return v
	case []any:
		if len(v) > 0 {
			v[0] = change(t, v[0])
		}
		return v
	default:
		return other
	}
}
