package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// syntax says how a language writes comments, strings and keywords.
type syntax struct {
	comments []string // what begins a comment that goes to the end of the line
	block    string   // what begins and ends a longer comment, separated by a space
	quotes   string   // what begins and ends a string within a line
	long     []string // what begins and ends a string of several lines
	raw      string   // the element of long whose strings treat a backslash as an ordinary character
	chars    bool     // a single quote is around one character, as in 'x'
	anyCase  bool     // keywords are also written in capitals
	words    string   // the keywords, each between spaces
}

const (
	wordsC = " auto bool break case char const continue default do double else enum extern false float for goto if inline int long " +
		"NULL nullptr register return short signed sizeof static struct switch true typedef union unsigned void volatile while " +
		"class delete namespace new private protected public template this throw try catch using virtual "
	wordsGo = " any bool break byte case chan const continue default defer else error fallthrough false float32 float64 for func go goto if import " +
		"int int32 int64 interface iota map nil package range return rune select string struct switch true type uint uint32 uint64 var "
	wordsJava = " abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally " +
		"float for if implements import instanceof int interface long native new null package private protected public record return " +
		"sealed short static super switch synchronized this throw throws transient try var void volatile while yield true false "
	wordsJS = " any as async await boolean break case catch class const continue debugger default delete do else enum export extends false finally " +
		"for from function get if implements import in instanceof interface let new null number of private protected public readonly " +
		"return set static string super switch this throw true try type typeof undefined unknown var void while with yield "
	wordsPython = " and as assert async await break case class continue def del elif else except False finally for from global if import in " +
		"is lambda match None nonlocal not or pass raise return self True try while with yield "
	wordsRust = " as async await bool break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub " +
		"ref return Self self static str struct super trait true type unsafe use where while i32 i64 u8 u32 u64 usize f64 String Vec Option Result "
	wordsShell = " case do done elif else esac export fi for function if in local readonly return select set shift then trap unset until while " +
		"alias break cd continue echo eval exec exit source test "
	wordsSQL = " add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop " +
		"else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or " +
		"order outer primary references returning right rollback select set table then true union unique update using values view when where with "
)

// syntaxOf returns the syntax of a language by its name after a fence, or nil.
func syntaxOf(language string) *syntax {
	switch strings.ToLower(language) {
	case "go", "golang":
		return &syntax{comments: []string{"//"}, block: "/* */", quotes: `"`, long: []string{"`"}, raw: "`", chars: true, words: wordsGo}
	case "python", "py", "python3":
		return &syntax{comments: []string{"#"}, quotes: `"'`, long: []string{`"""`, `'''`}, words: wordsPython}
	case "javascript", "js", "jsx", "mjs", "typescript", "ts", "tsx":
		return &syntax{comments: []string{"//"}, block: "/* */", quotes: `"'`, long: []string{"`"}, words: wordsJS}
	case "bash", "sh", "shell", "zsh", "console":
		return &syntax{comments: []string{"#"}, long: []string{`"`, `'`}, raw: "'", words: wordsShell}
	case "json", "jsonc", "json5", "jsonl":
		return &syntax{comments: []string{"//"}, block: "/* */", quotes: `"`, words: " true false null "}
	case "yaml", "yml", "toml":
		return &syntax{comments: []string{"#"}, quotes: `"'`, words: " true false null yes no on off "}
	case "sql", "postgresql", "sqlite", "mysql":
		return &syntax{comments: []string{"--"}, block: "/* */", quotes: `"`, long: []string{"'"}, raw: "'", anyCase: true, words: wordsSQL}
	case "rust", "rs":
		return &syntax{comments: []string{"//"}, block: "/* */", long: []string{`"`}, chars: true, words: wordsRust}
	case "java", "kotlin", "kt":
		return &syntax{comments: []string{"//"}, block: "/* */", quotes: `"`, long: []string{`"""`}, chars: true, words: wordsJava}
	case "c", "h", "cpp", "c++", "cc", "hpp":
		return &syntax{comments: []string{"//"}, block: "/* */", quotes: `"`, chars: true, words: wordsC}
	default:
		return nil
	}
}

// highlight colours the comments, strings, numbers and keywords of code, and the lines of a
// diff. Code in an unknown language stays plain.
func highlight(language, code string, c *colours) []span {
	if l := strings.ToLower(language); l == "diff" || l == "patch" {
		return highlightDiff(code, c)
	}
	s := syntaxOf(language)
	if s == nil {
		return []span{{text: code}}
	}
	var spans []span
	from, look := 0, style{}
	for at := 0; at < len(code); {
		n, next := s.next(code, at, c)
		if next != look {
			spans = append(spans, span{code[from:at], look})
			from, look = at, next
		}
		at += n
	}
	return append(spans, span{code[from:], look})
}

func highlightDiff(code string, c *colours) []span {
	var spans []span
	for text := range strings.SplitAfterSeq(code, "\n") {
		var look style
		switch {
		case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"), strings.HasPrefix(text, "diff "):
			look.bold = true
		case strings.HasPrefix(text, "+"):
			look = c.added
		case strings.HasPrefix(text, "-"):
			look = c.removed
		case strings.HasPrefix(text, "@@"):
			look = c.section
		}
		spans = append(spans, span{text, look})
	}
	return spans
}

// next returns the length and the style of the part of the code that begins at this
// position. The length is at least 1.
func (s *syntax) next(code string, at int, c *colours) (int, style) {
	rest := code[at:]
	if n := s.comment(code, at); n > 0 {
		return n, c.commented
	}
	if n := s.quoted(rest); n > 0 {
		return n, c.quoted
	}
	r, size := utf8.DecodeRuneInString(rest)
	if !wordRune(r) {
		return size, style{}
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return !wordRune(r) })
	if n < 0 {
		n = len(rest)
	}
	word := rest[:n]
	switch {
	case r >= '0' && r <= '9':
		return n, c.number
	case s.keyword(word):
		return n, c.keyword
	}
	return n, style{}
}

func (s *syntax) keyword(word string) bool {
	return strings.Contains(s.words, " "+word+" ") || s.anyCase && strings.Contains(s.words, " "+strings.ToLower(word)+" ")
}

// comment returns the length of the comment that begins at this position, or 0. A hash
// begins a comment only after a space: $# and ${#name} are code.
func (s *syntax) comment(code string, at int) int {
	rest := code[at:]
	for _, mark := range s.comments {
		if !strings.HasPrefix(rest, mark) || mark == "#" && at > 0 && code[at-1] != ' ' && code[at-1] != '\n' {
			continue
		}
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return end
		}
		return len(rest)
	}
	begin, end, ok := strings.Cut(s.block, " ")
	if !ok || !strings.HasPrefix(rest, begin) {
		return 0
	}
	if n := strings.Index(rest[len(begin):], end); n >= 0 {
		return len(begin) + n + len(end)
	}
	return len(rest)
}

// quoted returns the length of the string that begins here, or 0.
func (s *syntax) quoted(rest string) int {
	for _, mark := range s.long {
		if strings.HasPrefix(rest, mark) {
			return closing(rest, mark, true, mark != s.raw)
		}
	}
	switch q := rest[:1]; {
	case strings.Contains(s.quotes, q):
		return closing(rest, q, false, true)
	case s.chars && q == "'":
		if n := closing(rest, q, false, true); n > 0 && (rest[1] == '\\' || utf8.RuneCountInString(rest[:n]) <= 3) {
			return n
		}
	}
	return 0
}

// closing returns the length of the string that begins with this mark, with both marks.
// If nothing closes it, a string within a line does not count as a string, and a string
// of several lines goes to the end of the code.
func closing(rest, mark string, lines, escapes bool) int {
	for i := len(mark); i < len(rest); i++ {
		switch {
		case strings.HasPrefix(rest[i:], mark):
			return i + len(mark)
		case rest[i] == '\\' && escapes:
			i++
		case rest[i] == '\n' && !lines:
			return 0
		}
	}
	if lines {
		return len(rest)
	}
	return 0
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
