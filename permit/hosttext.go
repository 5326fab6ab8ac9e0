package permit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Programs that accept international names first map characters to plain ones. All of
// them read １２７。0。0。① as 127.0.0.1. The full mapping is a table of several thousand
// lines. This file covers only the characters that can become ASCII. A host with other
// special characters counts as unclear, not as public.

// plainHost maps a host as browsers and resolvers do. It decodes percent escapes,
// replaces characters that stand for ASCII characters, and changes to lower case. sure is
// false if programs disagree about the result.
func plainHost(host string) (text string, sure bool) {
	sure = true
	for range 3 {
		decoded := percentDecode(host)
		if decoded == host {
			break
		}
		// Only some programs decode a second time.
		sure = sure && !strings.Contains(decoded, "%")
		host = decoded
	}
	if isPlainASCII(host) {
		return host, sure && !strings.Contains(host, "%")
	}
	if !utf8.ValidString(host) {
		return strings.ToValidUTF8(host, "\uFFFD"), false
	}
	var b strings.Builder
	for _, r := range host {
		s, ok := plainRune(r)
		b.WriteString(s)
		sure = sure && ok
	}
	return strings.ToLower(b.String()), sure && !strings.Contains(host, "%")
}

func isPlainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// percentDecode decodes each escape such as %41 once. It keeps everything else.
func percentDecode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, ok1 := digit(s[i+1], 16)
			low, ok2 := digit(s[i+2], 16)
			if ok1 && ok2 {
				b.WriteByte(byte(high<<4 | low))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// plainDigits replaces the digits of all scripts with ASCII digits. Use it only to read
// addresses, because names may contain such digits.
func plainDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
			return r
		}
		return '0' + digitValue(r)
	}, s)
}

// digitValue returns the value of a decimal digit of any script. Each range of such
// digits begins with a zero and repeats after ten characters.
func digitValue(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}

// plainRune returns the text that a character of a host stands for. sure is false if
// programs disagree.
func plainRune(r rune) (text string, sure bool) {
	letter := func(offset rune) string { return string('a' + offset%26) }
	switch {
	case r < utf8.RuneSelf:
		return string(r), true
	case 0xFF01 <= r && r <= 0xFF5E: // full-width forms
		return string(r - 0xFEE0), true
	case 0x1D400 <= r && r <= 0x1D6A3: // mathematical letters
		return letter(r - 0x1D400), true
	case 0x1D7CE <= r && r <= 0x1D7FF: // mathematical digits
		return string('0' + (r-0x1D7CE)%10), true
	case 0x24B6 <= r && r <= 0x24E9: // letters in circles
		return letter(r - 0x24B6), true
	case 0x1F130 <= r && r <= 0x1F149: // letters in squares
		return letter(r - 0x1F130), true
	case 0x2460 <= r && r <= 0x2473: // ① to ⑳
		return counting(r - 0x2460 + 1), true
	case 0x2488 <= r && r <= 0x249B: // ⒈ to ⒛
		return counting(r-0x2488+1) + ".", true
	case 0x2080 <= r && r <= 0x2089: // subscript digits
		return string('0' + r - 0x2080), true
	case r == 0x2070, 0x2074 <= r && r <= 0x2079: // superscript digits
		return string('0' + r - 0x2070), true
	case 0x3251 <= r && r <= 0x325F: // ㉑ to ㉟
		return counting(r - 0x3251 + 21), true
	case 0x32B1 <= r && r <= 0x32BF: // ㊱ to ㊿
		return counting(r - 0x32B1 + 36), true
	}
	if s, ok := standsFor[r]; ok {
		return s, true
	}
	return string(r), !unicode.In(r, unicode.Cf, unicode.Nd, foldedElsewhere)
}

func counting(n rune) string {
	if n < 10 {
		return string('0' + n)
	}
	return string('0'+n/10) + string('0'+n%10)
}

// standsFor maps single characters to the text that they stand for. All programs drop a
// character that maps to an empty text.
var standsFor = map[rune]string{
	'。': ".", '｡': ".", '﹒': ".", '․': ".", '‥': "..", '…': "...",
	'¹': "1", '²': "2", '³': "3", '⓪': "0", '🄀': "0.", 'ª': "a", 'º': "o", 'ſ': "s", 'İ': "i\u0307",
	'ℂ': "c", 'ℊ': "g", 'ℋ': "h", 'ℌ': "h", 'ℍ': "h", 'ℎ': "h", 'ℐ': "i", 'ℑ': "i", 'ℒ': "l", 'ℓ': "l", 'ℕ': "n", 'ℙ': "p", 'ℚ': "q", 'ℛ': "r", 'ℜ': "r",
	'ℝ': "r", 'ℤ': "z", 'ℨ': "z", '\u212A': "k", 'ℬ': "b", 'ℭ': "c", 'ℯ': "e", 'ℰ': "e", 'ℱ': "f", 'ℳ': "m", 'ℴ': "o", 'ℹ': "i", 'ⅅ': "d", 'ⅆ': "d",
	'ⅇ': "e", 'ⅈ': "i", 'ⅉ': "j", '№': "no", '℠': "sm", '℡': "tel", '™': "tm", '℻': "fax", '℀': "a/c", '℁': "a/s", '℅': "c/o", '℆': "c/u",
	'Ⅰ': "i", 'Ⅱ': "ii", 'Ⅲ': "iii", 'Ⅳ': "iv", 'Ⅴ': "v", 'Ⅵ': "vi", 'Ⅶ': "vii", 'Ⅷ': "viii", 'Ⅸ': "ix", 'Ⅹ': "x", 'Ⅺ': "xi", 'Ⅻ': "xii", 'Ⅼ': "l", 'Ⅽ': "c",
	'Ⅾ': "d", 'Ⅿ': "m", 'ⅰ': "i", 'ⅱ': "ii", 'ⅲ': "iii", 'ⅳ': "iv", 'ⅴ': "v", 'ⅵ': "vi", 'ⅶ': "vii", 'ⅷ': "viii", 'ⅸ': "ix", 'ⅹ': "x", 'ⅺ': "xi", 'ⅻ': "xii",
	'ⅼ': "l", 'ⅽ': "c", 'ⅾ': "d", 'ⅿ': "m", 'ﬀ': "ff", 'ﬁ': "fi", 'ﬂ': "fl", 'ﬃ': "ffi", 'ﬄ': "ffl", 'ﬅ': "st", 'ﬆ': "st",
	'\u00AD': "", '\u034F': "", '\u200B': "", '\u2060': "", '\u2064': "", '\uFEFF': "",
}

// foldedElsewhere are characters that programs map to other characters or drop. plainRune
// handles some of them itself. The ranges also have two letters that older programs map
// and newer programs keep. Registered names rarely contain any of these characters.
var foldedElsewhere = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x00A0, 0x00BF, 1},
		{0x00DF, 0x00DF, 1},
		{0x0132, 0x0133, 1},
		{0x013F, 0x0140, 1},
		{0x0149, 0x0149, 1},
		{0x017F, 0x017F, 1},
		{0x01C4, 0x01CC, 1},
		{0x01F1, 0x01F3, 1},
		{0x02B0, 0x02FF, 1},
		{0x037A, 0x037E, 1},
		{0x03C2, 0x03C2, 1},
		{0x115F, 0x1160, 1},
		{0x17B4, 0x17B5, 1},
		{0x180B, 0x180F, 1},
		{0x1D2C, 0x1D7F, 1},
		{0x1D9B, 0x1DBF, 1},
		{0x1E9A, 0x1E9E, 1},
		{0x2000, 0x218F, 1},
		{0x2460, 0x24FF, 1},
		{0x2C7C, 0x2C7D, 1},
		{0x3000, 0x3004, 1},
		{0x3164, 0x3164, 1},
		{0x3200, 0x33FF, 1},
		{0xA69C, 0xA69D, 1},
		{0xAB5C, 0xAB5F, 1},
		{0xFB00, 0xFDFF, 1},
		{0xFE00, 0xFFFF, 1},
	},
	R32: []unicode.Range32{{0x1D400, 0x1D7FF, 1}, {0x1F100, 0x1F2FF, 1}, {0x1FBF0, 0x1FBF9, 1}, {0xE0000, 0xE0FFF, 1}},
}
