package declare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// redacted is the text that replaces a secret.
const redacted = "[REDACTED]"

// shortestSecret is the minimum length of a secret. Shorter values occur in ordinary
// words.
const shortestSecret = 4

// redactor removes secrets from data that leaves this process.
type redactor struct{ secrets []string }

func newRedactor(values []string) *redactor {
	r := new(redactor)
	for _, value := range values {
		for _, v := range []string{value, strings.TrimSpace(value)} {
			if len([]rune(v)) >= shortestSecret && !slices.Contains(r.secrets, v) {
				r.secrets = append(r.secrets, v)
			}
		}
	}
	return r
}

// text removes the secrets from a text, even if they overlap.
func (r *redactor) text(s string) string {
	type span struct{ from, to int }
	var spans []span
	for _, secret := range r.secrets {
		for at := 0; ; {
			i := strings.Index(s[at:], secret)
			if i < 0 {
				break
			}
			spans = append(spans, span{at + i, at + i + len(secret)})
			at += i + 1
		}
	}
	if len(spans) == 0 {
		return s
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	end := 0 // the position up to which s was copied or replaced
	for _, sp := range spans {
		if sp.from >= end {
			b.WriteString(s[end:sp.from])
			b.WriteString(redacted)
		}
		end = max(end, sp.to)
	}
	b.WriteString(s[end:])
	return b.String()
}

// json removes the secrets from the strings and keys of JSON, even if they are escaped.
// It replaces a number that contains a secret by a string.
func (r *redactor) json(data json.RawMessage) (json.RawMessage, error) {
	if len(r.secrets) == 0 {
		return data, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var b bytes.Buffer
	if err := r.value(d, &b); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("redact: unexpected data after the JSON value")
	}
	return b.Bytes(), nil
}

func (r *redactor) value(d *json.Decoder, b *bytes.Buffer) error {
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	put := func(v any) error {
		data, err := json.Marshal(v)
		b.Write(data)
		return err
	}
	switch t := token.(type) {
	case string:
		return put(r.text(t))
	case json.Number:
		if clean := r.text(t.String()); clean != t.String() {
			return put(clean)
		}
		return put(t)
	case json.Delim:
		b.WriteRune(rune(t))
		for first := true; d.More(); first = false {
			if !first {
				b.WriteByte(',')
			}
			if t == '{' {
				key, err := d.Token()
				if err != nil {
					return fmt.Errorf("read: %w", err)
				}
				name, _ := key.(string)
				if err := put(r.text(name)); err != nil {
					return err
				}
				b.WriteByte(':')
			}
			if err := r.value(d, b); err != nil {
				return err
			}
		}
		end, err := d.Token()
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if closing, ok := end.(json.Delim); ok {
			b.WriteRune(rune(closing))
		}
		return nil
	default:
		return put(t)
	}
}
