package typeschema

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Checker accepts ordinary inputs much faster than a validator: it reads the bytes once and
// does not allocate. An input that it does not accept may still be valid. A nil Checker
// accepts nothing.
type Checker struct{ root *check }

// Accepts reports whether the input is a JSON object that matches the schema. It reports
// false if an object has a duplicate key, or two keys that differ only in case. If Accepts
// reports false, ask a validator.
func (c *Checker) Accepts(input []byte) bool {
	if c == nil {
		return false
	}
	s := scanner{data: input}
	return s.next() == '{' && c.root.accepts(&s, deepest) && s.next() == 0 && s.pos == len(input)
}

const (
	deepest  = 100 // maximum depth of nesting
	mostKeys = 16  // maximum number of keys of an object that is not closed
	mostSeen = 64  // maximum number of properties of a schema
)

// The JSON types as bits.
const (
	isNull = 1 << iota
	isBoolean
	isInteger
	isNumber
	isString
	isArray
	isObject
	isAny = 1<<iota - 1
)

var typeBits = map[string]int{"null": isNull, "boolean": isBoolean, "integer": isInteger, "number": isNumber | isInteger, "string": isString, "array": isArray, "object": isObject}

// check is a compiled schema.
type check struct {
	types                              int
	enum                               []any // nil: no enum
	least, most, above, below          float64
	shortest, longest                  int // limits for strings
	pattern                            *regexp.Regexp
	fewest, largest                    int // limits for lists
	items                              *check
	properties                         []property
	required                           uint64 // one bit for each property
	closed                             bool   // other properties are not allowed
	others                             *check // checks the values of other properties
	names                              *regexp.Regexp
	bounded, measured, counted, choosy bool // which of the rules above are set
}

type property struct {
	name  string
	check *check
	// absent says that null counts as absent.
	absent bool
}

// unchecked accepts any JSON.
var unchecked = func() *check {
	c := &check{types: isAny}
	c.items, c.others = c, c
	return c
}()

func (c *check) accepts(s *scanner, depth int) bool {
	if depth == 0 {
		return false
	}
	switch b := s.next(); b {
	case '{':
		return c.types&isObject != 0 && !c.choosy && c.acceptsObject(s, depth)
	case '[':
		return c.types&isArray != 0 && !c.choosy && c.acceptsList(s, depth)
	case '"':
		inner, plain, ok := s.text()
		return ok && c.types&isString != 0 && c.acceptsText(inner, plain)
	case 't':
		return s.word("true") && c.types&isBoolean != 0 && c.chosen(true)
	case 'f':
		return s.word("false") && c.types&isBoolean != 0 && c.chosen(false)
	case 'n':
		return s.word("null") && c.types&isNull != 0 && c.chosen(nil)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		f, ok := s.float()
		return ok && c.acceptsNumber(f)
	default:
		return false
	}
}

func (c *check) chosen(v any) bool { return !c.choosy || slices.Contains(c.enum, v) }

func (c *check) acceptsNumber(f float64) bool {
	if c.types&isNumber == 0 && (c.types&isInteger == 0 || f != math.Trunc(f)) {
		return false
	}
	if c.bounded && !(f >= c.least && f <= c.most && f > c.above && f < c.below) {
		return false
	}
	return !c.choosy || slices.ContainsFunc(c.enum, func(v any) bool { n, ok := v.(float64); return ok && n == f })
}

func (c *check) acceptsText(inner []byte, plain bool) bool {
	if !c.measured && !c.choosy {
		return true
	}
	if !plain {
		return false // the rules apply to the decoded text, which a checker does not have
	}
	if c.choosy && !slices.ContainsFunc(c.enum, func(v any) bool { word, ok := v.(string); return ok && word == string(inner) }) {
		return false
	}
	if n := utf8.RuneCount(inner); c.measured && (n < c.shortest || n > c.longest) {
		return false
	}
	return c.pattern == nil || c.pattern.Match(inner)
}

func (c *check) acceptsList(s *scanner, depth int) bool {
	s.pos++
	n := 0
	if !s.take(']') {
		for {
			if !c.items.accepts(s, depth-1) {
				return false
			}
			n++
			if s.take(']') {
				break
			}
			if !s.take(',') {
				return false
			}
		}
	}
	return !c.counted || n >= c.fewest && n <= c.largest
}

func (c *check) acceptsObject(s *scanner, depth int) bool {
	s.pos++
	if s.take('}') {
		return c.required == 0
	}
	var seen uint64
	var keys [mostKeys][]byte // the keys so far, if the object is not closed
	n := 0
	for i := 0; ; i++ {
		key, plain, ok := s.text()
		if !ok || !plain || !s.take(':') {
			return false
		}
		at := c.find(key, i)
		if !c.closed {
			if n == mostKeys || slices.ContainsFunc(keys[:n], func(k []byte) bool { return bytes.EqualFold(k, key) }) {
				return false
			}
			keys[n] = key
			n++
		}
		switch {
		case at < 0 && c.closed, c.names != nil && !c.names.Match(key):
			return false
		case at < 0:
			if !c.others.accepts(s, depth-1) {
				return false
			}
		default:
			if seen&(1<<at) != 0 {
				return false
			}
			seen |= 1 << at
			if !c.properties[at].accepts(s, depth-1) {
				return false
			}
		}
		if s.take('}') {
			return c.required&^seen == 0
		}
		if !s.take(',') {
			return false
		}
		s.space()
	}
}

func (p *property) accepts(s *scanner, depth int) bool {
	if p.absent && s.next() == 'n' {
		return s.word("null")
	}
	return p.check.accepts(s, depth)
}

// find returns the index of a property, or -1. It tries the index likely first, because
// most inputs have their keys in the order of the schema.
func (c *check) find(key []byte, likely int) int {
	if likely < len(c.properties) && c.properties[likely].name == string(key) {
		return likely
	}
	for i := range c.properties {
		if c.properties[i].name == string(key) {
			return i
		}
	}
	return -1
}

// Compile makes a checker from a schema. It returns nil if the schema has keywords that a
// checker does not support. If absent is true, null counts as absent for properties that
// are not required.
func Compile(schema []byte, absent bool) *Checker {
	c := &compiler{absent: absent, known: make(map[string]*check)}
	var root map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil {
		return nil
	}
	if defs, ok := root["$defs"]; ok && json.Unmarshal(defs, &c.defs) != nil {
		return nil
	}
	var version string
	if v, ok := root["$schema"]; ok && (json.Unmarshal(v, &version) != nil || !strings.HasSuffix(version, "json-schema.org/draft/2020-12/schema")) {
		return nil
	}
	delete(root, "$defs")
	delete(root, "$schema")
	check, ok := c.object(root)
	if !ok {
		return nil
	}
	return &Checker{check}
}

// compiler compiles the parts of one schema.
type compiler struct {
	absent bool
	defs   map[string]json.RawMessage
	known  map[string]*check // compiled definitions by name
}

// compile compiles a schema. It reports false if a checker does not support the schema.
func (c *compiler) compile(schema json.RawMessage) (*check, bool) {
	switch string(bytes.TrimSpace(schema)) {
	case "true", "{}":
		return unchecked, true
	}
	var keywords map[string]json.RawMessage
	if json.Unmarshal(schema, &keywords) != nil {
		return nil, false
	}
	return c.object(keywords)
}

// annotations are the keywords that do not restrict the value.
var annotations = []string{"title", "description", "default", "examples", "format", "contentEncoding", "contentMediaType", "deprecated", "readOnly", "writeOnly", "$comment"}

func (c *compiler) object(keywords map[string]json.RawMessage) (*check, bool) {
	for _, name := range annotations {
		delete(keywords, name)
	}
	if len(keywords) == 1 {
		for name, value := range keywords {
			switch name {
			case "$ref":
				return c.reference(value)
			case "allOf", "anyOf":
				return c.oneOf(name, value)
			}
		}
	}
	k := &check{types: isAny, least: math.Inf(-1), most: math.Inf(1), above: math.Inf(-1), below: math.Inf(1), longest: math.MaxInt, largest: math.MaxInt, items: unchecked, others: unchecked}
	return k, c.fill(k, keywords)
}

func (c *compiler) reference(value json.RawMessage) (*check, bool) {
	var ref string
	if json.Unmarshal(value, &ref) != nil {
		return nil, false
	}
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok || c.defs[name] == nil {
		return nil, false
	}
	if k := c.known[name]; k != nil {
		return k, true
	}
	k := new(check) // stored first, because the definition may refer to itself
	c.known[name] = k
	made, ok := c.compile(c.defs[name])
	if ok {
		*k = *made
	}
	return k, ok
}

// oneOf compiles an allOf or anyOf with one schema. It also supports an anyOf with a second
// schema that accepts only null.
func (c *compiler) oneOf(name string, value json.RawMessage) (*check, bool) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil || len(list) == 0 {
		return nil, false
	}
	k, ok := c.compile(list[0])
	if !ok || len(list) == 1 {
		return k, ok
	}
	other, ok := c.compile(list[1])
	if !ok || name != "anyOf" || len(list) != 2 || other.types != isNull || other.choosy {
		return nil, false
	}
	if k.types == 0 {
		return nil, false // a recursive definition that is not compiled yet
	}
	with := *k
	with.types |= isNull
	if with.choosy {
		with.enum = append(slices.Clone(with.enum), nil)
	}
	return &with, true
}

// fill compiles the keywords of one schema. It reports false if one is not supported.
func (c *compiler) fill(k *check, keywords map[string]json.RawMessage) bool {
	var required []string
	for name, value := range keywords {
		ok := true
		read := func(into any) { ok = json.Unmarshal(value, into) == nil && string(bytes.TrimSpace(value)) != "null" }
		switch name {
		case "type":
			k.types, ok = typesFrom(value)
		case "enum":
			k.choosy = true
			read(&k.enum)
		case "const":
			var v any
			ok = json.Unmarshal(value, &v) == nil && keywords["enum"] == nil
			k.choosy, k.enum = true, []any{v}
		case "minimum":
			k.bounded = true
			read(&k.least)
		case "maximum":
			k.bounded = true
			read(&k.most)
		case "exclusiveMinimum":
			k.bounded = true
			read(&k.above)
		case "exclusiveMaximum":
			k.bounded = true
			read(&k.below)
		case "minLength":
			k.measured = true
			read(&k.shortest)
		case "maxLength":
			k.measured = true
			read(&k.longest)
		case "pattern":
			k.measured = true
			k.pattern, ok = expression(value)
		case "minItems":
			k.counted = true
			read(&k.fewest)
		case "maxItems":
			k.counted = true
			read(&k.largest)
		case "items":
			k.items, ok = c.compile(value)
		case "properties":
			ok = c.properties(k, value)
		case "required":
			read(&required)
		case "additionalProperties":
			if k.closed = refusesAll(value); !k.closed {
				k.others, ok = c.compile(value)
			}
		case "propertyNames":
			var names map[string]json.RawMessage
			if read(&names); ok {
				ok = len(names) == 1 && names["pattern"] != nil
			}
			if ok {
				k.names, ok = expression(names["pattern"])
			}
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return k.require(required, c.absent)
}

// require sets which properties are required. It reports false if the schema does not have
// one of them.
func (c *check) require(required []string, absent bool) bool {
	for _, name := range required {
		at := c.find([]byte(name), 0)
		if at < 0 {
			return false
		}
		c.required |= 1 << at
	}
	for i := range c.properties {
		c.properties[i].absent = absent && c.required&(1<<i) == 0
	}
	return true
}

// properties compiles properties, in the order of the schema.
func (c *compiler) properties(k *check, value json.RawMessage) bool {
	var schemas map[string]json.RawMessage
	if json.Unmarshal(value, &schemas) != nil || len(schemas) > mostSeen {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(value))
	if _, err := d.Token(); err != nil {
		return false
	}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		var schema json.RawMessage
		if err != nil || !ok || d.Decode(&schema) != nil {
			return false
		}
		if slices.ContainsFunc(k.properties, func(p property) bool { return strings.EqualFold(p.name, name) }) {
			return false
		}
		compiled, ok := c.compile(schema)
		if !ok {
			return false
		}
		k.properties = append(k.properties, property{name: name, check: compiled})
	}
	return true
}

// typesFrom reads the keyword "type".
func typesFrom(value json.RawMessage) (types int, ok bool) {
	var names []string
	if json.Unmarshal(value, &names) != nil {
		names = make([]string, 1)
		if json.Unmarshal(value, &names[0]) != nil {
			return 0, false
		}
	}
	for _, name := range names {
		bits, known := typeBits[name]
		if !known {
			return 0, false
		}
		types |= bits
	}
	return types, true
}

func expression(value json.RawMessage) (*regexp.Regexp, bool) {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return nil, false
	}
	re, err := regexp.Compile(text)
	return re, err == nil
}

// refusesAll reports whether a schema accepts no value.
func refusesAll(value json.RawMessage) bool {
	if string(bytes.TrimSpace(value)) == "false" {
		return true
	}
	var keywords map[string]json.RawMessage
	if json.Unmarshal(value, &keywords) != nil || len(keywords) != 1 {
		return false
	}
	not := string(bytes.TrimSpace(keywords["not"]))
	return not == "true" || not == "{}"
}
