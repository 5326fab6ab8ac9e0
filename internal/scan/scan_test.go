package scan_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/scan"
)

// texts are messages, with the names of their tokens.
var texts = []struct {
	rule, text string
	want       []string
}{
	// Texts that contain tokens.
	{"a token alone", "/a", []string{"a"}},
	{"a token at the start", "/compact please", []string{"compact"}},
	{"a token in the middle", "please /compact now", []string{"compact"}},
	{"a token at the end", "please /compact", []string{"compact"}},
	{"several tokens", "/a /b /c", []string{"a", "b", "c"}},
	{"tokens near other slashes", "a/bcdefghi /j k/lmnopqrstuvwx /y z/ /b", []string{"j", "y", "b"}},
	{"one token twice", "/a and /a", []string{"a", "a"}},
	{"one space serves two tokens", "/a /a", []string{"a", "a"}},
	{"two spaces", "x  /a  y", []string{"a"}},
	{"letters of both cases", "/CamelCase /lower /UPPER", []string{"CamelCase", "lower", "UPPER"}},
	{"digits behind the letter", "/v2 /a1b2", []string{"v2", "a1b2"}},
	{"underscores and hyphens", "/a_b /a-b /a_ /a- /a--b", []string{"a_b", "a-b", "a_", "a-", "a--b"}},
	{"one letter", "/x", []string{"x"}},
	{"a long name", "/" + strings.Repeat("n", 300), []string{strings.Repeat("n", 300)}},
	{"text around it is any text", "größe /a 日本", []string{"a"}},

	// Texts without a valid name after a slash.
	{"a digit first is none", "/2a", nil},
	{"a hyphen first is none", "/-a", nil},
	{"an underscore first is none", "/_a", nil},
	{"a letter beyond ASCII first is none", "/über", nil},
	{"a letter beyond ASCII inside is none", "/ueber/ü /naïve", nil},
	{"a slash alone is none", "/", nil},
	{"a slash between spaces is none", "a / b", nil},
	{"a slash at the end is none", "either /", nil},
	{"nothing", "", nil},
	{"spaces alone", " \t\n", nil},
	{"no slash", "plain text", nil},

	// Paths and other texts with a slash. A single word after a space counts as a token.
	{"an absolute path", "/usr/local/bin", nil},
	{"a path of one directory", "/usr/", nil},
	{"a path behind text", "look at /etc/passwd", nil},
	{"a file with an extension", "/etc/hosts.conf /main.go", nil},
	{"a relative path", "./a ../b a/b internal/scan", nil},
	{"a home path", "~/a", nil},
	{"a directory of one word reads like a token", "ls /tmp", []string{"tmp"}},
	{"a path with a space", "/srv/my /app", []string{"app"}},
	{"a glob", "/* /a* /**/b", nil},
	{"a drive", `C:/a C:\a \a`, nil},
	{"a doubled slash", "//a", nil},
	{"a comment", "// a //b", nil},
	{"a block comment", "/* a */", nil},
	{"a shebang", "#!/bin/sh", nil},
	{"a slash behind the name", "/a/", nil},

	// Addresses and other words with special characters. A route of one word counts as a
	// token.
	{"an address", "https://example.com/a", nil},
	{"an address with a port", "http://localhost:8080/a/b?c=/d", nil},
	{"an address in brackets", "<https://example.com/a>", nil},
	{"a file address", "file:///a", nil},
	{"an e-mail address", "a@b.com", nil},
	{"a mention", "@name", nil},
	{"a ratio", "1/a a/b and/or", nil},
	{"a date", "2026/Nov/15", nil},
	{"a MIME type", "text/html", nil},
	{"a route", "GET /users/:id", nil},
	{"a route of one word reads like a token", "GET /users", []string{"users"}},

	// With punctuation next to it, a name after a slash is not a token.
	{"a comma behind it", "/a, b", nil},
	{"a full stop behind it", "Use /a.", nil},
	{"a question mark behind it", "/a?", nil},
	{"an exclamation mark behind it", "/a!", nil},
	{"a colon behind it", "/a: b", nil},
	{"a semicolon behind it", "/a;", nil},
	{"parentheses around it", "(/a)", nil},
	{"an opening parenthesis", "(/a b)", nil},
	{"a closing parenthesis", "( /a)", nil},
	{"brackets around it", "[/a] {/b} </c>", nil},
	{"a closing tag", "</a> </ a>", nil},
	{"quotes around it", "\"/a\" '/b' `/c`", nil},
	{"guillemets and quotes of other languages", "«/a» „/b“ 「/c」", nil},
	{"an equals sign", "x=/a /a=x", nil},
	{"a hyphen in front", "-/a", nil},
	{"a dash in front", "—/a", nil},
	{"an ellipsis behind it", "/a…", nil},
	{"an asterisk around it", "*/a* **/b**", nil},
	{"an apostrophe behind it", "/a's", nil},
	{"a placeholder", "[invoked_extension__hook_a] [invoked_extension__skill_b]", nil},

	// White space of every kind separates tokens. Invisible characters do not.
	{"a tab", "x\t/a\ty", []string{"a"}},
	{"a newline", "x\n/a\ny", []string{"a"}},
	{"a carriage return", "x\r\n/a\r\ny", []string{"a"}},
	{"a vertical tab and a form feed", "\v/a\f/b", []string{"a", "b"}},
	{"every line", "/a\n/b\n\n/c", []string{"a", "b", "c"}},
	{"next line, U+0085", "x\u0085/a\u0085y", []string{"a"}},
	{"no-break space, U+00A0", "x\u00a0/a\u00a0y", []string{"a"}},
	{"ogham space mark, U+1680", "x\u1680/a\u1680y", []string{"a"}},
	{"en quad to hair space", "\u2000/a\u2001/b\u2002/c\u200a/d\u2009", []string{"a", "b", "c", "d"}},
	{"line and paragraph separator", "\u2028/a\u2029/b\u2028", []string{"a", "b"}},
	{"narrow no-break space, U+202F", "\u202f/a\u202f", []string{"a"}},
	{"mathematical space, U+205F", "\u205f/a\u205f", []string{"a"}},
	{"ideographic space, U+3000", "日本\u3000/a\u3000語", []string{"a"}},
	{"zero width space is none, U+200B", "x\u200b/a /b\u200b", nil},
	{"zero width joiner is none, U+200D", "x\u200d/a /b\u200d", nil},
	{"byte order mark is none, U+FEFF", "\ufeff/a", nil},
	{"mongolian vowel separator is none, U+180E", "\u180e/a", nil},
	{"a NUL is none", "\x00/a /b\x00", nil},

	// Text of other scripts around a token, and characters that look like a slash or a
	// letter.
	{"emoji around it", "🚀 /a 🚀", []string{"a"}},
	{"emoji that touch it", "🚀/a /b🚀", nil},
	{"a flag and a skin tone", "🇩🇪 /a 👍🏽", []string{"a"}},
	{"right-to-left text", "שלום /a עולם", []string{"a"}},
	{"right-to-left text that touches it", "שלום/a /bعالم", nil},
	{"right-to-left mark is none, U+200F", "\u200f/a /b\u200f", nil},
	{"arabic with a directive", "مرحبا /compact من فضلك", []string{"compact"}},
	{"a combining accent behind it", "/a\u0301", nil},
	{"a slash of full width is none", "／a", nil},
	{"a fraction slash is none", "⁄a ∕b", nil},
	{"letters of full width are none", "/ａ", nil},
	{"a cyrillic a is none", "/а", nil},
	{"the Kelvin sign is none", "/\u212a", nil},
	{"a long s is none", "/\u017f", nil},

	// Invalid UTF-8.
	{"a byte that is no text in front", "\xff/a", nil},
	{"a byte that is no text behind", "/a\xff", nil},
	{"half a space in front", "\xa0/a \x85/b", nil},
	{"half a space behind", "/a\xe3\x80", nil},
	{"a byte that is no text elsewhere", "\xff /a \xfe", []string{"a"}},
}

// SPEC D-01
func TestTokens(t *testing.T) {
	t.Parallel()
	if len(texts) < 80 {
		t.Errorf("the table has %d texts, want 80", len(texts))
	}
	for _, test := range texts {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got := names(scan.Tokens(test.text)); !slices.Equal(got, test.want) {
				t.Errorf("Tokens(%q) = %q, want %q", test.text, got, test.want)
			}
			if got := names(slowly(test.text)); !slices.Equal(got, test.want) {
				t.Errorf("the slow reference finds %q in %q, want %q", got, test.text, test.want)
			}
		})
	}
}

// SPEC D-01
func FuzzTokens(f *testing.F) {
	for _, test := range texts {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens := scan.Tokens(text)
		if want := slowly(text); !slices.Equal(tokens, want) {
			t.Fatalf("Tokens(%q) = %v, want %v", text, tokens, want)
		}
		for _, token := range tokens {
			if got := text[token.Start:token.End]; got != "/"+token.Name || !scan.Valid(token.Name) {
				t.Fatalf("token %v of %q is %q", token, text, got)
			}
		}
		if got := scan.Replace(text, tokens, func(t scan.Token) string { return "/" + t.Name }); got != text {
			t.Fatalf("Replace with the same = %q, want %q", got, text)
		}
	})
}

// SPEC D-01
func TestValidSaysWhatATokenCanSpell(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "Z9", "a-b_c", "", "-a", "9", "a b", "a.b", "ü", "aü", "a\n", "K"} {
		tokens := scan.Tokens("/" + name)
		if want := len(tokens) == 1 && tokens[0].Name == name; scan.Valid(name) != want {
			t.Errorf("Valid(%q) = %t, want %t: that is what the scanner finds", name, !want, want)
		}
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	text := "/a then /b and /a"
	tokens := scan.Tokens(text)
	got := scan.Replace(text, slices.Delete(tokens, 1, 2), func(t scan.Token) string { return "[" + t.Name + "]" })
	if want := "[a] then /b and [a]"; got != want {
		t.Errorf("Replace = %q, want %q", got, want)
	}
}

func TestNoTokenCostsNoAllocation(t *testing.T) { //nolint:paralleltest // it counts allocations
	text := strings.Repeat("see https://example.com/a/b, ./c and /d/e. ", 100)
	if n := testing.AllocsPerRun(10, func() { scan.Tokens(text) }); n > 0 {
		t.Errorf("a text without a token costs %v allocations, want none", n)
	}
}

// slowly finds tokens by the definition: (^|\s)/([A-Za-z][\w-]*)(?=\s|$), with the white
// space of Unicode. It tries every rune and is slow.
func slowly(text string) []scan.Token {
	type place struct {
		r    rune
		at   int
		text bool // a valid rune, not an invalid byte
	}
	var runes []place
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		runes = append(runes, place{r, i, r != utf8.RuneError || size > 1})
		i += size
	}
	space := func(i int) bool { return runes[i].text && unicode.IsSpace(runes[i].r) }
	in := func(i int, set string) bool { return strings.ContainsRune(set, runes[i].r) && runes[i].text }
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	at := func(i int) int {
		if i == len(runes) {
			return len(text)
		}
		return runes[i].at
	}
	var tokens []scan.Token
	for i := range runes {
		if !in(i, "/") || i > 0 && !space(i-1) || i+1 == len(runes) || !in(i+1, letters) {
			continue
		}
		for end := len(runes); end > i+1; end-- { // the longest match first, because * is greedy
			all := true
			for j := i + 2; j < end; j++ {
				all = all && in(j, letters+"0123456789_-")
			}
			if all && (end == len(runes) || space(end)) {
				tokens = append(tokens, scan.Token{Name: text[at(i+1):at(end)], Start: at(i), End: at(end)})
				break
			}
		}
	}
	return tokens
}

func names(tokens []scan.Token) []string {
	var all []string
	for _, t := range tokens {
		all = append(all, t.Name)
	}
	return all
}

// BenchmarkTokens compares a scan of 100 KB without tokens with counting the slashes.
func BenchmarkTokens(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and then it rests for a while in the shade of an old tree. ", 10) + "See https://example.com/a for more. "
	text = strings.Repeat(text, 100_000/len(text)+1)[:100_000]
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if scan.Tokens(text) != nil {
				b.Fatal("there is no token")
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if strings.Count(text, "/") == 0 {
				b.Fatal("there are slashes")
			}
		}
	})
}

func TestLeading(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/help": "help", "/Compct now, please": "Compct", "see /help": "", "/usr/bin/env": "", "help": "", "": "", "/help, please": "", " /help": "",
	} {
		if got := scan.Leading(text); got != want {
			t.Errorf("Leading(%q) = %q, want %q", text, got, want)
		}
	}
}
