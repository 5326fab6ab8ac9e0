package declare

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A denial must never turn into consent because of other output around it. So the output
// of a hook is first searched for denials, and only then read as an answer. The search
// works even if the output around a denial is not valid JSON.

type denialKind uint8

// The kinds of denials. At turn.stop, only saysDeny and saysContinue count. At other
// phases, all except saysContinue count.
const (
	saysHalt     denialKind = iota // "decision": "halt"
	saysDeny                       // "decision": "deny"
	saysSynonym                    // "continue": false, "blocked": true
	saysContinue                   // "decision": "continue"

	denialKinds
)

// denials are the denials found in an output.
type denials struct {
	said    [denialKinds]bool
	reasons [denialKinds]string // for each kind, the first reason that is not empty
}

func (d *denials) add(o *openObject) {
	for kind := range denialKinds {
		if o.kinds&(1<<kind) == 0 {
			continue
		}
		d.said[kind] = true
		if d.reasons[kind] == "" {
			d.reasons[kind] = o.reason
		}
	}
}

// join adds denials that were found in another form of the same output.
func (d *denials) join(other *denials) {
	for kind := range denialKinds {
		if other.said[kind] {
			d.add(&openObject{kinds: 1 << kind, reason: other.reasons[kind]})
		}
	}
}

const (
	// deepest is the nesting depth that a search must be able to handle. encoding/json
	// supports the same depth.
	deepest = 10_000
	// longestText is how many bytes of a string are kept. The keywords are shorter, and
	// of a long reason the beginning is enough.
	longestText = 16 << 10
	// mostReasons is how many nested objects may have a reason. Together with
	// longestText, it limits the memory of a search.
	mostReasons = 64
)

// search finds objects with a denial in a stream of bytes. It finds every complete JSON
// object, whatever comes before and after the object. It is tolerant: between strings it
// ignores unknown bytes, and in strings it accepts line breaks and invalid UTF-8. It
// reads each byte once.
//
// The difficulty is a quote before the object: it may open a string or close one. So a
// search follows two readers at the same time. The reader between assumes that the
// current byte is outside of strings, and the reader inside assumes that it is in a
// string. At each quote, the two change places. A backslash outside of strings is not
// JSON, so it ends the reader between. A new opening brace starts that reader again. So
// there are never more than two.
type search struct {
	denials

	between *reader // nil if this reader has no open object
	inside  *reader // nil if this reader has no open object
	spare   *reader // an unused reader, or nil
}

// reader is one way to read the stream, see search.
type reader struct {
	open    []openObject // the open objects, the innermost last
	text    []byte       // the current or last string, still escaped
	escaped bool         // the last byte of the string was a backslash
	word    []byte       // the word outside of strings, such as true
	key     string       // the last string, if it is a known key and a colon can follow
	value   string       // the known key whose value comes next, or ""
}

// openObject is an object whose closing brace has not been read.
type openObject struct {
	kinds  uint8 // the kinds of denials in the object, one bit for each kind
	reason string
}

// Write searches the next bytes. It returns no error.
func (s *search) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		switch {
		case s.between != nil:
		case s.inside == nil: // skip to the next object
			next := bytes.IndexByte(p[i:], '{')
			if next < 0 {
				return len(p), nil
			}
			i += next
		case !s.inside.escaped: // skip the text of a string
			from := i
			for i < len(p)-1 && p[i] != '"' && p[i] != '\\' && p[i] != '{' {
				i++
			}
			s.inside.text = append(s.inside.text, p[from:min(i, from+longestText-len(s.inside.text))]...)
		}
		s.next(p[i])
	}
	return len(p), nil
}

func (s *search) next(c byte) {
	if c == '"' && (s.inside == nil || !s.inside.escaped) {
		s.between, s.inside = s.inside, s.between
		if s.between != nil {
			s.between.endString()
		}
		if s.inside != nil {
			s.inside.beginString()
		}
		return
	}
	if s.inside != nil {
		s.inside.addText(c)
	}
	switch {
	case c == '{' && s.between == nil:
		s.between = s.newReader()
	case c == '\\' && s.between != nil:
		s.between, s.spare = nil, s.between
	case s.between != nil:
		s.between.nextBetween(c, &s.denials)
		if len(s.between.open) == 0 {
			s.between, s.spare = nil, s.between
		}
	}
}

// newReader returns a reader that has just read an opening brace.
func (s *search) newReader() *reader {
	r := s.spare
	if r == nil {
		r = new(reader)
	}
	s.spare = nil
	*r = reader{open: append(r.open[:0], openObject{}), text: r.text[:0], word: r.word[:0]}
	return r
}

func (r *reader) beginString() {
	r.endWord()
	r.text, r.escaped = r.text[:0], false
}

func (r *reader) addText(c byte) {
	r.escaped = c == '\\' && !r.escaped
	if len(r.text) < longestText {
		r.text = append(r.text, c)
	}
}

// endString handles the end of a string, which is a key or the value of a key.
func (r *reader) endString() {
	if r.value == "" {
		r.key = keyword(r.text)
		return
	}
	top := &r.open[len(r.open)-1]
	switch r.value {
	case "decision":
		switch keyword(r.text) {
		case "halt":
			top.kinds |= 1 << saysHalt
		case "deny":
			top.kinds |= 1 << saysDeny
		case "continue":
			top.kinds |= 1 << saysContinue
		}
	case "reason":
		if top.reason == "" {
			top.reason = unquoted(r.text)
		}
		if old := len(r.open) - 1 - mostReasons; old >= 0 {
			r.open[old].reason = ""
		}
	}
	r.key, r.value = "", ""
}

// nextBetween handles a byte outside of strings.
func (r *reader) nextBetween(c byte, found *denials) {
	switch c {
	case '{':
		r.endWord()
		if len(r.open) == 2*deepest {
			r.open = append(r.open[:0], r.open[deepest:]...)
		}
		r.open = append(r.open, openObject{})
		r.key, r.value = "", ""
	case '}':
		r.endWord()
		last := len(r.open) - 1
		found.add(&r.open[last])
		r.open = r.open[:last]
		r.key, r.value = "", ""
	case ':':
		r.endWord()
		r.key, r.value = "", r.key
	case ',':
		r.endWord()
		r.key, r.value = "", ""
	case ' ', '\t', '\n', '\r', '[', ']':
		r.endWord()
	default:
		if c > ' ' && c < 0x7f && len(r.word) < len("false")+1 {
			r.word = append(r.word, c)
		}
	}
}

// endWord handles a word outside of strings. Only true and false after a known key
// matter.
func (r *reader) endWord() {
	if len(r.word) == 0 {
		return
	}
	if r.value == "continue" && string(r.word) == "false" || r.value == "blocked" && string(r.word) == "true" {
		r.open[len(r.open)-1].kinds |= 1 << saysSynonym
	}
	r.word = r.word[:0]
}

// keyword returns a string if it may be a keyword, or else "". It removes invisible
// characters, such as a zero byte or a byte order mark.
func keyword(text []byte) string {
	switch string(text) {
	case "decision":
		return "decision"
	case "reason":
		return "reason"
	case "continue":
		return "continue"
	case "blocked":
		return "blocked"
	case "deny":
		return "deny"
	case "halt":
		return "halt"
	}
	if len(text) >= longestText {
		return ""
	}
	for _, c := range text {
		if c == '\\' || c < ' ' || c >= 0x7f { // most strings have no such byte
			return strings.Map(func(r rune) rune {
				if !unicode.IsGraphic(r) {
					return -1
				}
				return r
			}, unquoted(text))
		}
	}
	return ""
}

// unquoted decodes the text of a JSON string. Invalid escapes stay unchanged, and invalid
// UTF-8 becomes U+FFFD.
func unquoted(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return strings.ToValidUTF8(string(text), "\ufffd")
	}
	var b strings.Builder
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i == len(text)-1 {
			b.Write(text)
			break
		}
		b.Write(text[:i])
		r, size := unescape(text[i:])
		b.WriteString(r)
		text = text[i+size:]
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// unescape decodes the escape at the beginning of a text, and returns its length. The
// text has at least two bytes.
func unescape(text []byte) (string, int) {
	if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
		return "\"\\/\b\f\n\r\t"[i : i+1], 2
	}
	first, ok := hexadecimal(text)
	if !ok {
		return string(text[:2]), 2
	}
	if second, ok := hexadecimal(text[6:]); ok && utf16.IsSurrogate(first) {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return string(r), 12
		}
	}
	return string(first), 6 // half of a surrogate pair becomes the replacement character
}

// hexadecimal decodes \uXXXX at the beginning of a text.
func hexadecimal(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range text[2:6] {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}
