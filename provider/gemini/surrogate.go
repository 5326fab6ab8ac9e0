package gemini

import (
	"bytes"
	"strconv"
)

// wholeCharacters replaces escapes that are half a character, which a model may write and
// encoding/json takes: the service calls a request with one no JSON.
func wholeCharacters(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	out := bytes.Clone(raw)
	for i := 0; i < len(out); i++ {
		if out[i] != '\\' {
			continue
		}
		switch first := half(out[i:]); {
		case first == 0:
			i++ // an escaped backslash begins nothing
		case first < lowHalf && half(out[min(i+escaped, len(out)):]) >= lowHalf:
			i += 2*escaped - 1
		default:
			copy(out[i:], `\ufffd`)
			i += escaped - 1
		}
	}
	return out
}

// Where halves of characters are: the first ones from highHalf on, the second ones from
// lowHalf on. An escape is six characters long.
const (
	highHalf, lowHalf, pastHalves = 0xd800, 0xdc00, 0xe000
	escaped                       = len(`\u0000`)
)

// half returns the half of a character that a text begins with; 0 if there is none.
func half(text []byte) uint64 {
	if len(text) < escaped || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	code, err := strconv.ParseUint(string(text[2:escaped]), 16, 16)
	if err != nil || code < highHalf || code >= pastHalves {
		return 0
	}
	return code
}
