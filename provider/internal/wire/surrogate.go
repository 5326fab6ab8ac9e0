package wire

import (
	"bytes"
	"strconv"
)

// ReplaceLoneSurrogates replaces each \u escape that is only half of a character with
// \ufffd. Models write such escapes and encoding/json accepts them, but services reject a
// request with one as invalid JSON. The input is not changed.
func ReplaceLoneSurrogates(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	out := bytes.Clone(raw)
	for i := 0; i < len(out); i++ {
		if out[i] != '\\' {
			continue
		}
		switch first := surrogate(out[i:]); {
		case first == 0:
			i++ // skip the escaped character, which may be a backslash
		case first < lowSurrogates && surrogate(out[min(i+escapeLength, len(out)):]) >= lowSurrogates:
			i += 2*escapeLength - 1
		default:
			copy(out[i:], `\ufffd`)
			i += escapeLength - 1
		}
	}
	return out
}

// High surrogates, which come first in a pair, begin at highSurrogates, and low ones at
// lowSurrogates.
const (
	highSurrogates, lowSurrogates, pastSurrogates = 0xd800, 0xdc00, 0xe000

	escapeLength = len(`\u0000`)
)

// surrogate returns the surrogate whose escape a text begins with, or 0 if there is none.
func surrogate(text []byte) uint64 {
	if len(text) < escapeLength || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	code, err := strconv.ParseUint(string(text[2:escapeLength]), 16, 16)
	if err != nil || code < highSurrogates || code >= pastSurrogates {
		return 0
	}
	return code
}
