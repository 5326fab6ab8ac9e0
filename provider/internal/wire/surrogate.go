package wire

import (
	"bytes"
	"strconv"
)

// ReplaceLoneSurrogates replaces each \u escape that is only half of a character with
// \ufffd. Models write such escapes, and encoding/json accepts them. But services reject
// them as invalid JSON. The function does not change raw.
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

// A pair consists of a high surrogate and then a low surrogate. High surrogates begin at
// highSurrogates, low surrogates at lowSurrogates.
const (
	highSurrogates, lowSurrogates, pastSurrogates = 0xd800, 0xdc00, 0xe000

	escapeLength = len(`\u0000`)
)

// surrogate returns the surrogate if a text begins with the escape of one. Otherwise it
// returns 0.
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
