package scripted

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// chunksOf splits parts into the chunks that a model streams before the response.
func chunksOf(parts []belay.Part, size int) []belay.Chunk {
	if size < 0 {
		return nil
	}
	var chunks []belay.Chunk
	for i := range parts {
		switch p := &parts[i]; p.Type {
		case belay.PartThinking:
			for _, piece := range pieces(p.Text, size) {
				chunks = append(chunks, belay.Chunk{Thinking: piece})
			}
		case belay.PartText:
			for _, piece := range pieces(p.Text, size) {
				chunks = append(chunks, belay.Chunk{Text: piece})
			}
		case belay.PartCall:
			input := string(p.Call.Input)
			if p.Call.Malformed != "" {
				input = p.Call.Malformed
			}
			for _, piece := range pieces(input, size) {
				chunks = append(chunks, belay.Chunk{Input: &belay.InputDelta{Call: p.Call.ID, Tool: p.Call.Tool, Text: piece}})
			}
		default: // a step has no other types of parts
		}
	}
	return chunks
}

// pieces splits a text after every size characters. If size is 0, it splits the text before
// each word except the first.
func pieces(text string, size int) []string {
	var all []string
	for text != "" {
		n := wordEnd(text)
		if size > 0 {
			n = charsEnd(text, size)
		}
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

// wordEnd returns the index after the first word and the white space around it.
func wordEnd(text string) int {
	start := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) })
	if start < 0 {
		return len(text)
	}
	space := strings.IndexFunc(text[start:], unicode.IsSpace)
	if space < 0 {
		return len(text)
	}
	space += start
	next := strings.IndexFunc(text[space:], func(r rune) bool { return !unicode.IsSpace(r) })
	if next < 0 {
		return len(text)
	}
	return space + next
}

// charsEnd returns the index after the first n characters.
func charsEnd(text string, n int) int {
	end := 0
	for ; n > 0 && end < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return end
}
