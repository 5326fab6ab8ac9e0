package typeschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rewriter changes an input so that encoding/json can decode it into its type. All bytes
// that need no change stay the same, so that raw values do not change.
type rewriter struct {
	scanner

	out    []byte
	copied int  // how many bytes of the input are copied to out
	fills  bool // only add defaults and remove nulls
	within int  // how many defaults this value is nested in
	path   []place
	steps  [8]place // memory for path, enough for most inputs
}

var (
	errNotJSON = errors.New("the input is not JSON")
	errTooDeep = errors.New("the input is nested too deeply")
)

const (
	mostNested   = 10_000 // the limit of encoding/json
	mostDefaults = 8      // maximum nesting of defaults in defaults
)

// rewrite returns the rewritten input. If nothing must change, it returns the input itself.
func (n *node) rewrite(input []byte, fills bool, within int) ([]byte, error) {
	if within > mostDefaults {
		return nil, errTooDeep
	}
	r := &rewriter{scanner: scanner{data: input}, fills: fills, within: within}
	r.path = r.steps[:0]
	if err := r.value(n); err != nil {
		return nil, err
	}
	if r.next() != 0 || r.pos != len(input) {
		return nil, errNotJSON
	}
	if r.copied == 0 {
		return input, nil
	}
	return append(r.out, input[r.copied:]...), nil
}

// replace replaces the bytes from..to of the input by a text.
func (r *rewriter) replace(from, to int, text []byte) {
	r.out = append(append(r.out, r.data[r.copied:from]...), text...)
	r.copied = to
}

// place is one step of the path to a value, for errors.
type place struct {
	name  []byte
	index int // the index of an item, if name is nil
}

// at returns the JSON pointer of the current value.
func (r *rewriter) at() string {
	var b strings.Builder
	for _, p := range r.path {
		b.WriteByte('/')
		if p.name != nil {
			_, _ = pointerEscapes.WriteString(&b, string(p.name)) // a strings.Builder does not fail
		} else {
			b.WriteString(strconv.Itoa(p.index))
		}
	}
	return b.String()
}

// inner reads a value inside another value.
func (r *rewriter) inner(n *node, name []byte, index int) error {
	if len(r.path) > mostNested {
		return errTooDeep
	}
	r.path = append(r.path, place{name, index})
	err := r.value(n)
	if err == nil {
		r.path = r.path[:len(r.path)-1]
	}
	return err
}

func (r *rewriter) value(n *node) error {
	switch r.next() {
	case '{':
		return r.object(n)
	case '[':
		return r.list(n)
	case '"':
		return r.duration(n)
	case 't', 'f', 'n':
		if !r.word("true") && !r.word("false") && !r.word("null") {
			return errNotJSON
		}
		return nil
	case 0:
		return errNotJSON
	default:
		from := r.pos
		token, plain, ok := r.number()
		if !ok {
			return errNotJSON
		}
		if n != nil && (n.integer || n.duration) && !plain && !r.fills {
			if number := whole(string(token)); number != "" {
				r.replace(from, r.pos, []byte(number))
			}
		}
		return nil
	}
}

// duration reads a string. If the type is a duration, it replaces the string by
// nanoseconds.
func (r *rewriter) duration(n *node) error {
	from := r.pos
	if _, _, ok := r.text(); !ok {
		return errNotJSON
	}
	if n == nil || !n.duration || r.fills {
		return nil
	}
	var text string
	if err := json.Unmarshal(r.data[from:r.pos], &text); err != nil {
		return errNotJSON
	}
	took, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%s: %q is not a duration: write it as 90s or 1h30m", r.at(), text)
	}
	r.replace(from, r.pos, strconv.AppendInt(nil, int64(took), 10))
	return nil
}

func (r *rewriter) list(n *node) error {
	r.pos++
	if r.take(']') {
		return nil
	}
	var elem *node
	if n != nil {
		elem = n.elem
	}
	for i := 0; ; i++ {
		if err := r.inner(elem, nil, i); err != nil {
			return err
		}
		if r.take(']') {
			return nil
		}
		if !r.take(',') {
			return errNotJSON
		}
	}
}

func (r *rewriter) object(n *node) error {
	r.pos++
	var given []bool // for each default, whether the input has the property
	if n != nil && len(n.defaults) > 0 {
		given = make([]bool, len(n.defaults))
	}
	kept := false  // at least one property was kept
	comma := r.pos // the comma before the next property
	for more := !r.take('}'); more; {
		r.space()
		from := r.pos
		dropped, err := r.property(n, given)
		if err != nil {
			return err
		}
		end := r.pos
		more = r.take(',')
		switch {
		case dropped && kept:
			r.replace(comma, end, nil)
		case dropped && more:
			r.replace(from, r.pos, nil)
		case dropped:
			r.replace(from, end, nil)
		default:
			kept = true
		}
		comma = r.pos - 1
		if !more && !r.take('}') {
			return errNotJSON
		}
	}
	return r.fill(n, given, kept)
}

// property reads a key and its value. It reports whether both must be removed, because null
// counts as absent.
func (r *rewriter) property(n *node, given []bool) (dropped bool, err error) {
	from := r.pos
	name, plain, ok := r.text()
	if !ok || !r.take(':') {
		return false, errNotJSON
	}
	if !plain {
		var decoded string
		if json.Unmarshal(r.data[from:from+len(name)+2], &decoded) != nil {
			return false, errNotJSON
		}
		name = []byte(decoded)
	}
	at := n.defaultOf(name)
	if at >= 0 {
		given[at] = true
	}
	if r.next() != 'n' || n == nil || n.fields[string(name)] == nil || n.required[string(name)] {
		return false, r.inner(n.below(name), name, 0)
	}
	from = r.pos
	if !r.word("null") {
		return false, errNotJSON
	}
	if at < 0 {
		return true, nil
	}
	r.replace(from, r.pos, nil)
	return false, r.insert(n.fields[string(name)], n.defaults[at].value)
}

// fill adds the defaults of absent properties, before the closing brace that was just read.
func (r *rewriter) fill(n *node, given []bool, kept bool) error {
	if !slices.Contains(given, false) {
		return nil
	}
	r.replace(r.pos-1, r.pos-1, nil)
	for i, d := range n.defaults {
		if given[i] {
			continue
		}
		if kept {
			r.out = append(r.out, ',')
		}
		kept = true
		r.out = append(append(r.out, d.key...), ':')
		if err := r.insert(n.fields[d.name], d.value); err != nil {
			return err
		}
	}
	return nil
}

// insert adds a default. The default itself may have to be rewritten.
func (r *rewriter) insert(n *node, value json.RawMessage) error {
	value, err := n.rewrite(value, r.fills, r.within+1)
	r.out = append(r.out, value...)
	return err
}

// filled is a property that has a default.
type filled struct {
	name  string
	key   []byte // the name, encoded as JSON
	value json.RawMessage
}

// defaultOf returns the index of a property's default, or -1.
func (n *node) defaultOf(name []byte) int {
	if n != nil {
		for i := range n.defaults {
			if n.defaults[i].name == string(name) {
				return i
			}
		}
	}
	return -1
}

// below returns the node of a property.
func (n *node) below(name []byte) *node {
	if n == nil {
		return nil
	}
	if f := n.fields[string(name)]; f != nil {
		return f
	}
	return n.elem
}

// whole returns a number such as 5.0 or 1e3 as an integer. It returns "" if the number is
// not whole.
func whole(number string) string {
	if f, err := strconv.ParseFloat(number, 64); err != nil || math.Abs(f) > 1<<64 {
		return ""
	}
	exact, ok := new(big.Rat).SetString(number) // a float64 would round large numbers
	if !ok || !exact.IsInt() {
		return ""
	}
	return exact.Num().String()
}
