package declare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/belay-run/belay/internal/frontmatter"
)

// deepest is how far values may be nested.
const deepest = 16

// readJSON reads a file in JSON as if it were YAML, with the line of every value.
func readJSON(text []byte) (frontmatter.Value, error) {
	r := &jsonReading{text: text, tokens: json.NewDecoder(bytes.NewReader(text))}
	r.tokens.UseNumber()
	value, err := r.value(0)
	if err == nil {
		if _, more := r.tokens.Token(); !errors.Is(more, io.EOF) {
			err = r.failf("there is something behind the JSON value: remove it")
		}
	}
	return value, err
}

type jsonReading struct {
	text   []byte
	tokens *json.Decoder
	at     int64 // up to where lines are counted
	lines  int
}

// line is that of the token that was read last.
func (r *jsonReading) line() int {
	end := min(max(r.tokens.InputOffset(), r.at), int64(len(r.text)))
	r.lines += bytes.Count(r.text[r.at:end], []byte("\n"))
	r.at = end
	return r.lines + 1
}

func (r *jsonReading) failf(format string, args ...any) error {
	return &frontmatter.Error{Line: r.line(), Message: fmt.Sprintf(format, args...)}
}

func (r *jsonReading) token() (json.Token, error) {
	token, err := r.tokens.Token()
	if err != nil {
		return nil, r.failf("it is not JSON: %v", err)
	}
	return token, nil
}

func (r *jsonReading) value(level int) (frontmatter.Value, error) {
	token, err := r.token()
	if err != nil {
		return frontmatter.Value{}, err
	}
	v := frontmatter.Value{Line: r.line()}
	switch t := token.(type) {
	case string:
		v.Kind, v.Text = frontmatter.String, t
	case bool:
		v.Kind, v.Text = frontmatter.Bool, strconv.FormatBool(t)
	case json.Number:
		v.Kind, v.Text = frontmatter.Int, t.String()
		if strings.ContainsAny(v.Text, ".eE") {
			v.Kind = frontmatter.Float
		}
	case json.Delim:
		if level >= deepest {
			return v, r.failf("values are nested more than %d deep: write them plainer", deepest)
		}
		return r.nested(v, t, level)
	}
	return v, nil
}

func (r *jsonReading) nested(v frontmatter.Value, open json.Delim, level int) (frontmatter.Value, error) {
	v.Kind = frontmatter.List
	seen := make(map[string]bool)
	if open == '{' {
		v.Kind = frontmatter.Map
	}
	for r.tokens.More() {
		field := frontmatter.Field{}
		if open == '{' {
			key, err := r.token()
			if err != nil {
				return v, err
			}
			field.Key, _ = key.(string)
			field.Line = r.line()
			if seen[field.Key] {
				return v, r.failf("the key %q is there twice: leave one", field.Key)
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
	_, err := r.token() // what closes it
	return v, err
}

// asJSON writes a value of a file as JSON.
func asJSON(v frontmatter.Value) json.RawMessage {
	var b bytes.Buffer
	writeJSON(&b, v)
	return b.Bytes()
}

func writeJSON(b *bytes.Buffer, v frontmatter.Value) {
	text := func(s string) {
		data, err := json.Marshal(s)
		if err != nil { // a text always has a JSON form
			data = []byte(`""`)
		}
		b.Write(data)
	}
	switch v.Kind {
	case frontmatter.Null:
		b.WriteString("null")
	case frontmatter.String:
		text(v.Text)
	case frontmatter.Bool:
		b.WriteString(strings.ToLower(v.Text))
	case frontmatter.Int, frontmatter.Float:
		if json.Valid([]byte(v.Text)) {
			b.WriteString(v.Text)
		} else { // 0x10 and .inf are numbers in YAML alone
			text(v.Text)
		}
	case frontmatter.List:
		b.WriteByte('[')
		for i, item := range v.List {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	case frontmatter.Map:
		b.WriteByte('{')
		for i, f := range v.Map {
			if i > 0 {
				b.WriteByte(',')
			}
			text(f.Key)
			b.WriteByte(':')
			writeJSON(b, f.Value)
		}
		b.WriteByte('}')
	}
}
