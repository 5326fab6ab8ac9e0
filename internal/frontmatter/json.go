package frontmatter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// ParseJSON reads a file that is one JSON object, in the form that ParseYAML returns.
// Errors are of type *Error.
func ParseJSON(text string) (*Document, error) {
	d := new(Document)
	v, err := ReadJSON(d.withoutMark(text))
	if err != nil {
		return nil, err
	}
	if v.Kind != Map {
		return nil, fail(v.Line, "the file is %s: write a JSON object", v.Kind)
	}
	d.Found, d.Fields = true, v.Map
	return d, nil
}

// ReadJSON reads a JSON value, with the line of each part. A duplicate key is an error.
// Errors are of type *Error.
func ReadJSON(text string) (Value, error) {
	if len(text) > Limit {
		return Value{}, fail(1, "the file has %d bytes: the limit is %d", len(text), Limit)
	}
	if err := checkText(text, 1); err != nil {
		return Value{}, err
	}
	r := &jsonReading{text: text, tokens: json.NewDecoder(strings.NewReader(text))}
	r.tokens.UseNumber()
	v, err := r.value(0)
	if err != nil {
		return v, err
	}
	if _, more := r.tokens.Token(); !errors.Is(more, io.EOF) {
		return v, r.failf("there is text after the JSON value: remove it")
	}
	return v, nil
}

type jsonReading struct {
	text   string
	tokens *json.Decoder
	at     int64 // the newlines before this offset are counted
	lines  int
}

// line returns the line of the last token.
func (r *jsonReading) line() int {
	end := min(max(r.tokens.InputOffset(), r.at), int64(len(r.text)))
	r.lines += strings.Count(r.text[r.at:end], "\n")
	r.at = end
	return r.lines + 1
}

func (r *jsonReading) failf(format string, args ...any) error {
	return fail(r.line(), format, args...)
}

func (r *jsonReading) token() (json.Token, error) {
	token, err := r.tokens.Token()
	if errors.Is(err, io.EOF) {
		return nil, r.failf("it is not JSON: it ends too early")
	}
	if err != nil {
		return nil, r.failf("it is not JSON: %v", err)
	}
	return token, nil
}

func (r *jsonReading) value(level int) (Value, error) {
	token, err := r.token()
	if err != nil {
		return Value{}, err
	}
	v := Value{Line: r.line()}
	switch t := token.(type) {
	case string:
		v.Kind, v.Text = String, t
	case bool:
		v.Kind, v.Text = Bool, strconv.FormatBool(t)
	case json.Number:
		v.Kind, v.Text = Int, t.String()
		if strings.ContainsAny(v.Text, ".eE") {
			v.Kind = Float
		}
	case json.Delim:
		if level >= depth {
			return v, r.failf("values are nested more than %d levels deep: use fewer levels", depth)
		}
		return r.nested(v, t, level)
	}
	return v, nil
}

func (r *jsonReading) nested(v Value, open json.Delim, level int) (Value, error) {
	v.Kind = List
	seen := make(map[string]bool)
	if open == '{' {
		v.Kind = Map
	}
	for r.tokens.More() {
		field := Field{}
		if open == '{' {
			key, err := r.token()
			if err != nil {
				return v, err
			}
			field.Key, _ = key.(string)
			field.Line = r.line()
			if seen[field.Key] {
				return v, r.failf("the key %q occurs twice: remove one of them", field.Key)
			}
			seen[field.Key] = true
		}
		value, err := r.value(level + 1)
		if err != nil {
			return v, err
		}
		if open == '{' {
			field.Value = value
			v.Map = append(v.Map, field)
		} else {
			v.List = append(v.List, value)
		}
	}
	_, err := r.token() // the closing bracket
	return v, err
}

// JSON writes the value as JSON.
func (v *Value) JSON() json.RawMessage {
	var b bytes.Buffer
	v.writeJSON(&b)
	return b.Bytes()
}

func (v *Value) writeJSON(b *bytes.Buffer) {
	text := func(s string) {
		data, err := json.Marshal(s)
		if err != nil { // never happens: every string has a JSON form
			data = []byte(`""`)
		}
		b.Write(data)
	}
	switch v.Kind {
	case Null:
		b.WriteString("null")
	case String:
		text(v.Text)
	case Bool:
		b.WriteString(strings.ToLower(v.Text))
	case Int, Float:
		if json.Valid([]byte(v.Text)) {
			b.WriteString(v.Text)
		} else { // 0x10 and .inf are numbers in YAML, but not in JSON
			text(v.Text)
		}
	case List:
		b.WriteByte('[')
		for i := range v.List {
			if i > 0 {
				b.WriteByte(',')
			}
			v.List[i].writeJSON(b)
		}
		b.WriteByte(']')
	case Map:
		b.WriteByte('{')
		for i := range v.Map {
			if i > 0 {
				b.WriteByte(',')
			}
			text(v.Map[i].Key)
			b.WriteByte(':')
			v.Map[i].Value.writeJSON(b)
		}
		b.WriteByte('}')
	}
}
