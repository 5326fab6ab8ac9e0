package subagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/frontmatter"
)

// deepestJSON is how far values may be nested.
const deepestJSON = 16

// parseJSON reads a file in JSON as if it were YAML, with the line of every value.
func parseJSON(text string) (*frontmatter.Document, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	r := &jsonReading{text: text, tokens: json.NewDecoder(strings.NewReader(text))}
	if len(text) > frontmatter.Limit {
		return nil, r.failf("it is %d bytes long: at most %d are read", len(text), frontmatter.Limit)
	}
	if !utf8.ValidString(text) {
		return nil, r.failf("the file is not UTF-8")
	}
	r.tokens.UseNumber()
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.tokens.Token(); !errors.Is(err, io.EOF) {
		return nil, r.failf("there is something behind the object: remove it")
	}
	if v.Kind != frontmatter.Map {
		return nil, &frontmatter.Error{Line: v.Line, Message: fmt.Sprintf("it is %s: write an object", v.Kind)}
	}
	return &frontmatter.Document{Found: true, Fields: v.Map}, nil
}

type jsonReading struct {
	text   string
	tokens *json.Decoder
}

// line is that of the token that was read last.
func (r *jsonReading) line() int {
	return 1 + strings.Count(r.text[:min(int(r.tokens.InputOffset()), len(r.text))], "\n")
}

func (r *jsonReading) failf(format string, args ...any) error {
	return &frontmatter.Error{Line: r.line(), Message: fmt.Sprintf(format, args...)}
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

func (r *jsonReading) value(depth int) (frontmatter.Value, error) {
	token, err := r.token()
	v := frontmatter.Value{Line: r.line()}
	if err != nil {
		return v, err
	}
	switch t := token.(type) {
	case string:
		v.Kind, v.Text = frontmatter.String, t
	case bool:
		v.Kind, v.Text = frontmatter.Bool, strconv.FormatBool(t)
	case json.Number:
		v.Kind, v.Text = frontmatter.Float, t.String()
	case json.Delim:
		if depth == deepestJSON {
			return v, r.failf("values are nested more than %d deep", deepestJSON)
		}
		return r.nested(v, t, depth+1)
	}
	return v, nil
}

func (r *jsonReading) nested(v frontmatter.Value, open json.Delim, depth int) (frontmatter.Value, error) {
	v.Kind = frontmatter.List
	if open == '{' {
		v.Kind = frontmatter.Map
	}
	for r.tokens.More() {
		if open == '[' {
			item, err := r.value(depth)
			if err != nil {
				return v, err
			}
			v.List = append(v.List, item)
			continue
		}
		key, err := r.token()
		if err != nil {
			return v, err
		}
		field := frontmatter.Field{Key: fmt.Sprint(key), Line: r.line()}
		for _, other := range v.Map {
			if other.Key == field.Key {
				return v, r.failf("the key %q is there twice", field.Key)
			}
		}
		if field.Value, err = r.value(depth); err != nil {
			return v, err
		}
		v.Map = append(v.Map, field)
	}
	_, err := r.token() // what closes it
	return v, err
}
