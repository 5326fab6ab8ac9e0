package providertest

import (
	"bytes"
	"strconv"
)

// halfCharacter returns the index of the first \u escape that is only half of a character,
// or -1. Go accepts JSON with such an escape. Services reject it.
func halfCharacter(raw []byte) int {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		switch first := escapeOf(raw[i:]); {
		case first < 0xd800 || first > 0xdfff:
			i++ // skip the escaped character
		case first < 0xdc00 && escapeOf(raw[min(i+6, len(raw)):]) >= 0xdc00 && escapeOf(raw[i+6:]) <= 0xdfff:
			i += 11
		default:
			return i
		}
	}
	return -1
}

// escapeOf returns the code of the \u escape at the beginning of a text. It returns 0 if
// there is none.
func escapeOf(text []byte) uint64 {
	if len(text) < 6 || !bytes.HasPrefix(text, []byte(`\u`)) {
		return 0
	}
	code, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return code
}
