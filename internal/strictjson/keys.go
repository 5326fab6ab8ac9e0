package strictjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// mostKeys is how many keys of an object haveDistinctKeys compares.
const mostKeys = 16

// haveDistinctKeys reports whether no object in data has two equal keys, as fold compares
// them. It needs no allocations. If it is in doubt, it returns false: for invalid JSON, for
// keys that are not plain ASCII, and for objects with many keys.
func haveDistinctKeys(data []byte) bool {
	s := keyScanner{data: data}
	return json.Valid(data) && s.value()
}

// keyScanner reads valid JSON.
type keyScanner struct {
	data []byte
	at   int
}

// value reads a value. It returns false if it is in doubt about the keys.
func (s *keyScanner) value() bool {
	switch s.skip(); s.data[s.at] {
	case '{':
		return s.object()
	case '[':
		for s.at++; !s.end(']'); {
			if !s.value() {
				return false
			}
		}
	case '"':
		s.text()
	default:
		for s.at < len(s.data) && strings.IndexByte(",]} \t\r\n", s.data[s.at]) < 0 {
			s.at++
		}
	}
	return true
}

func (s *keyScanner) object() bool {
	var keys [mostKeys][]byte
	n := 0
	for s.at++; !s.end('}'); n++ {
		key := s.text()
		if n == mostKeys {
			return false
		}
		for _, c := range key {
			if c == '\\' || c >= utf8.RuneSelf {
				return false
			}
		}
		for _, other := range keys[:n] {
			if bytes.EqualFold(key, other) {
				return false
			}
		}
		keys[n] = key
		s.skip()
		s.at++ // the colon
		if !s.value() {
			return false
		}
	}
	return true
}

// end skips a comma. If the next character is the closing one, end skips it and returns
// true.
func (s *keyScanner) end(closing byte) bool {
	s.skip()
	if s.data[s.at] == ',' {
		s.at++
		s.skip()
	}
	if s.data[s.at] != closing {
		return false
	}
	s.at++
	return true
}

// text reads a string and returns what is between its quotes.
func (s *keyScanner) text() []byte {
	s.at++
	from := s.at
	for s.data[s.at] != '"' {
		if s.data[s.at] == '\\' {
			s.at++
		}
		s.at++
	}
	s.at++
	return s.data[from : s.at-1]
}

func (s *keyScanner) skip() {
	for s.data[s.at] == ' ' || s.data[s.at] == '\t' || s.data[s.at] == '\r' || s.data[s.at] == '\n' {
		s.at++
	}
}
