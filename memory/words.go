package memory

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// These are the limits of a search text. Text over a limit is ignored.
const (
	longestWord  = 48      // bytes
	longestQuery = 1 << 16 // bytes
	mostWords    = 32      // words of a query
)

// wordsOf returns the search words of a text, each once and in order. Words are in lower
// case, without accents and plural endings. Stop words are omitted. In scripts without
// spaces, every two neighbouring characters are a word. A word contains only letters and
// digits, so it cannot contain query syntax.
func wordsOf(text string) []string {
	var words []string
	seen := make(map[string]bool)
	add := func(word string) {
		if word != "" && !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			if w := strings.Trim(word.String(), "'"); !stopWords()[w] {
				add(stem(strings.ReplaceAll(w, "'", "")))
			}
			word.Reset()
		}
	}
	var last rune // previous character of a script without spaces, or 0
	paired := false
	for _, r := range text {
		if unspaced(r) {
			flush()
			if last != 0 {
				add(string([]rune{last, r}))
				paired = true
			}
			last = r
			continue
		}
		if last != 0 && !paired {
			add(string(last))
		}
		last, paired = 0, false
		switch r = unicode.ToLower(r); {
		case r == '\'' || r == '’':
			if word.Len() > 0 {
				word.WriteByte('\'')
			}
		case r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.M, r):
			flush()
		case unicode.Is(unicode.Mn, r) && word.Len() > 0 && word.String()[word.Len()-1] < utf8.RuneSelf:
			// Skip a combining accent.
		case word.Len() < longestWord:
			word.WriteString(plain(r))
		}
	}
	if last != 0 && !paired {
		add(string(last))
	}
	flush()
	return words
}

func queryWords(text string) []string {
	if len(text) > longestQuery {
		text = text[:longestQuery]
	}
	words := wordsOf(text)
	return words[:min(len(words), mostWords)]
}

// stem removes a plural ending, so that singular and plural match. The result need not be a
// correct word.
func stem(w string) string {
	switch n := len(w); {
	case n > 4 && strings.HasSuffix(w, "ies") && !strings.HasSuffix(w, "eies") && !strings.HasSuffix(w, "aies"):
		return w[:n-3] + "y"
	case n > 4 && (strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "shes") || strings.HasSuffix(w, "ches") || strings.HasSuffix(w, "xes")):
		return w[:n-2]
	case n > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "is"):
		return w[:n-1]
	default:
		return w
	}
}

// unspaced reports whether a character belongs to a script without spaces between words.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// plain removes the accent of a Latin letter.
func plain(r rune) string {
	if r < 0xC0 || r > 0x17F {
		return string(r)
	}
	if s, ok := accents()[r]; ok {
		return s
	}
	return string(r)
}

var accents = sync.OnceValue(func() map[rune]string {
	folded := make(map[rune]string)
	for to, from := range map[string]string{
		"a": "àáâãäåāăą", "c": "çćĉċč", "d": "ďđ", "e": "èéêëēĕėęě", "g": "ĝğġģ", "h": "ĥħ", "i": "ìíîïĩīĭįı", "j": "ĵ", "k": "ķ",
		"l": "ĺļľŀł", "n": "ñńņňŉ", "o": "òóôõöøōŏő", "r": "ŕŗř", "s": "śŝşš", "t": "ţťŧ", "u": "ùúûüũūŭůűų", "w": "ŵ", "y": "ýÿŷ",
		"z": "źżž", "ae": "æ", "oe": "œ", "ss": "ß",
	} {
		for _, r := range from {
			folded[r] = to
		}
	}
	return folded
})

// stopWords are words that are too common to search for.
var stopWords = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	for word := range strings.FieldsSeq(`
		a about after all also am an and any are aren't as at be because been before being but by can can't cannot could couldn't did didn't
		do does doesn't doing don't down each else few for from had has hasn't have haven't having he her here hers him his how i i'd i'll i'm
		i've if in into is isn't it it's its itself just let let's me more most my myself no nor not now of off ok okay on once one only or
		other our ours out over own please she should so some such tell than thank thanks that that's the their theirs them then there these
		they this those to too under until up very was wasn't we we're were what what's when where where's which while who who's whom whose why
		will with won't would yes you you're your yours`) {
		words[word] = true
	}
	return words
})
