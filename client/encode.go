package client

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/serve/api"
)

// outgoing is a request before it is sent.
type outgoing struct {
	method, path string // the path is escaped
	query        url.Values
	body         []byte // nil if the operation takes no body
	waits        bool   // the server may take long to answer
	key          string // the idempotency key: the request may be sent again
}

// path makes the path of an operation. The words alternate: a part of the path, then an id,
// and so on. An error names an id that no path can have.
func path(words ...string) (string, error) {
	var b strings.Builder
	for i, word := range words {
		if i%2 == 0 {
			b.WriteString(word)
			continue
		}
		if word == "" || word == "." || word == ".." { // these would name another operation
			return "", fmt.Errorf("%q is not an id", word)
		}
		b.WriteString(url.PathEscape(word))
	}
	return b.String(), nil
}

// encode makes the request of an operation from its input. The tags of the fields say where
// each belongs: see package api. A field with its zero value is left out, unless it is
// required. in is nil if the path says everything.
func encode(method, template string, in any) (*outgoing, error) {
	out := &outgoing{method: method, path: template, query: make(url.Values)}
	if in == nil {
		return out, nil
	}
	if start, ok := in.(api.StartTurn); ok {
		out.waits, out.key = start.Wait == api.WaitEnd, start.Key
	}
	body := make(map[string]any)
	takesBody := false
	for field, value := range reflect.ValueOf(in).Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue // a header
		}
		absent := value.IsZero() && field.Tag.Get("required") != "true"
		switch field.Tag.Get("in") {
		case "path":
			before, after, _ := strings.Cut(out.path, "{"+name+"}")
			filled, err := path(before, fmt.Sprint(value.Interface()), after)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out.path = filled
		case "query":
			if !absent {
				out.query[name] = words(value)
			}
		default:
			if takesBody = true; !absent {
				body[name] = value.Interface()
			}
		}
	}
	if !takesBody {
		return out, nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	out.body = data
	return out, nil
}

// words returns the values of a query parameter.
func words(value reflect.Value) []string {
	switch v := value.Interface().(type) {
	case []string:
		return v
	case map[string]string:
		var pairs []string
		for name, value := range v {
			pairs = append(pairs, name+"="+value)
		}
		slices.Sort(pairs)
		return pairs
	case time.Time:
		return []string{v.Format(time.RFC3339Nano)}
	default:
		return []string{fmt.Sprint(v)}
	}
}
