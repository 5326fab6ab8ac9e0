package redact

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// JSON returns a JSON value without its secrets. It applies Text to each text and to each name of
// a field. It also replaces all texts and numbers below a field whose name looks like the name of
// a secret, and what follows a flag such as --token in a list. The result has the shape of the
// value. A value without secrets is returned as it is.
func JSON(value json.RawMessage) json.RawMessage {
	switch {
	case len(value) == 0:
		return value
	case !json.Valid(value):
		return quoted(Text(string(value)))
	}
	c := cleaner{in: json.NewDecoder(bytes.NewReader(value))}
	c.in.UseNumber()
	c.value(place{})
	if !c.found {
		return value
	}
	return c.out.Bytes()
}

// cleaner copies a valid JSON value without its secrets. It reads tokens, because a decoded value
// would lack fields that have the same name as a later one.
type cleaner struct {
	in    *json.Decoder
	out   bytes.Buffer
	found bool
}

// value copies the next value. If it is a text, value returns the text without what Text finds.
func (c *cleaner) value(at place) (text string) {
	switch token := c.token().(type) {
	case string:
		text = Text(token)
		if c.found = c.found || text != token; !c.hide(at, text) {
			c.out.Write(quoted(text))
		}
	case json.Number:
		if !c.hide(at, token.String()) {
			c.out.WriteString(token.String())
		}
	case bool:
		c.out.WriteString(strconv.FormatBool(token))
	case nil:
		c.out.WriteString("null")
	case json.Delim:
		c.out.WriteRune(rune(token))
		c.parts(token == '{', at.below())
		end, _ := c.token().(json.Delim)
		c.out.WriteRune(rune(end))
	}
	return text
}

// parts copies the fields of an object, or the elements of a list.
func (c *cleaner) parts(object, hidden bool) {
	at := place{hidden: hidden}
	for first := true; c.in.More(); first = false {
		if !first {
			c.out.WriteByte(',')
		}
		if !object {
			at.before = c.value(at)
			continue
		}
		at.name, _ = c.token().(string)
		name := Text(at.name)
		c.found = c.found || name != at.name
		c.out.Write(quoted(name))
		c.out.WriteByte(':')
		c.value(at)
	}
}

// hide writes Mark in place of a text or a number, if its place shows that it is a secret.
func (c *cleaner) hide(at place, text string) bool {
	if !at.secret(text) {
		return false
	}
	c.found = true
	c.out.Write(quoted(Mark))
	return true
}

// token returns the next token. There is always one, because the value is valid.
func (c *cleaner) token() json.Token {
	token, _ := c.in.Token()
	return token
}

// place is what the values around a value say about it.
type place struct {
	name   string // of the field
	before string // the text before the value in a list
	hidden bool   // everything here is a secret
}

// secret reports whether a text or a number is a secret at this place.
func (p place) secret(text string) bool {
	switch {
	case text == "":
		return false
	case p.hidden:
		return !keeps("", text, false, true)
	case Name(p.name):
		return !keeps(p.name, text, false, true)
	case p.before != "":
		value := string(quoted(text))
		return Text(p.before+" "+value) != p.before+" "+Text(value)
	default:
		return false
	}
}

// below reports whether everything below this place is a secret.
func (p place) below() bool {
	return p.hidden || Name(p.name) || p.secret("x")
}

// quoted returns a text as JSON.
func quoted(text string) json.RawMessage {
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	encode.SetEscapeHTML(false)
	_ = encode.Encode(text) //nolint:errchkjson // a text can always be encoded
	return bytes.TrimSpace(out.Bytes())
}
