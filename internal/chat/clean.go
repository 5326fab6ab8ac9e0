package chat

import "unicode/utf8"

// whole removes an incomplete UTF-8 character at the end of a text. The next delta will
// complete that character.
func whole(text string) string {
	for i := 1; i <= utf8.UTFMax && i <= len(text); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRuneInString(text[len(text)-i:]) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}
