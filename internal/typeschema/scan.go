package typeschema

import (
	"bytes"
	"strconv"
)

// scanner reads JSON without allocating. A method reports false if the text is not JSON, or
// if the scanner does not support it.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// next skips white space and returns the next byte. It returns 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// take skips white space. If the next byte is c, it skips that byte too and reports true.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
		return false
	}
	s.pos += len(w)
	return true
}

// text reads a string and returns the bytes between the quotes. plain says that they have
// no escapes and are all ASCII.
func (s *scanner) text() (inner []byte, plain, ok bool) {
	if !s.take('"') {
		return nil, false, false
	}
	from := s.pos
	plain = true
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return s.data[from : s.pos-1], plain, true
		case c == '\\':
			plain = false
			if !s.escape() {
				return nil, false, false
			}
		case c < ' ':
			return nil, false, false
		default:
			plain = plain && c < 0x80
			s.pos++
		}
	}
	return nil, false, false
}

// escape reads an escape sequence.
func (s *scanner) escape() bool {
	if s.pos+1 >= len(s.data) {
		return false
	}
	switch s.data[s.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
		if s.pos+6 > len(s.data) {
			return false
		}
		for _, c := range s.data[s.pos+2 : s.pos+6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return false
			}
		}
		s.pos += 6
		return true
	default:
		return false
	}
}

// digits reads digits and returns how many there were.
func (s *scanner) digits() int {
	from := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - from
}

// number reads a number. plain says that it has no fraction and no exponent.
func (s *scanner) number() (token []byte, plain, ok bool) {
	from := s.pos
	if s.data[s.pos] == '-' {
		s.pos++
	}
	first := s.pos
	if n := s.digits(); n == 0 || n > 1 && s.data[first] == '0' {
		return nil, false, false
	}
	plain = true
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if plain = false; s.digits() == 0 {
			return nil, false, false
		}
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if plain = false; s.digits() == 0 {
			return nil, false, false
		}
	}
	return s.data[from:s.pos], plain, true
}

// float reads a number. It returns the same value as encoding/json, except that -0 is 0.
func (s *scanner) float() (f float64, ok bool) {
	token, plain, ok := s.number()
	if !ok {
		return 0, false
	}
	if plain && len(token) <= 15 { // a float64 is exact for so few digits
		digits, negative := bytes.CutPrefix(token, []byte("-"))
		n := 0
		for _, c := range digits {
			n = n*10 + int(c-'0')
		}
		if negative {
			n = -n
		}
		return float64(n), true
	}
	f, err := strconv.ParseFloat(string(token), 64)
	return f, err == nil
}
