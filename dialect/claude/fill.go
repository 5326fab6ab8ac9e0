package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// Filling fills in the placeholders in the text of a command or a skill:
//
//	$ARGUMENTS             the text after the name
//	$1, $2, …              the words of this text; a quoted text is one word
//	$ARGUMENTS[0], …       the same, counted from 0
//	!`command`             the output of a shell command
//	@path                  the content of a file of the project
//	${CLAUDE_PLUGIN_ROOT}  and other variables: see Variables
//
// If a text has $0, then $0 is the first word and $1 the second. Inserted texts are not
// searched for placeholders. A command is an exception: its placeholders are filled in
// before it runs.
type Filling struct {
	// Project is the directory that @path is relative to.
	Project string
	// Variables are the values of ${NAME}.
	Variables map[string]string
	// Run returns the output of a shell command, or a text that says why it did not run. An
	// error ends the filling.
	Run func(command string) (string, error)
	// Read returns the content of a file of the project, or a text that says why it cannot
	// be read. An error ends the filling.
	Read func(path string) (string, error)
}

var (
	placeholder = lazyregexp.New("(?s)```!\\s*\\n(.*?)\\n?```|(^|\\s)!`([^`\\n]+)`|(^|\\s)@([A-Za-z0-9_./~$-][^\\s`'\",;)]*)|\\$ARGUMENTS(?:\\[(\\d{1,2})\\])?|\\$(\\d)(\\w?)|\\$\\{([A-Z][A-Z0-9_]*)\\}")
	inCommand   = lazyregexp.New(`\$ARGUMENTS(?:\[(\d{1,2})\])?|\$(\d)(\w?)|\$\{([A-Z][A-Z0-9_]*)\}`)
)

// Fill returns the text with its placeholders filled in.
func (f *Filling) Fill(text, arguments string) (string, error) {
	args := splitWords(arguments)
	first := 1
	if strings.Contains(text, "$0") {
		first = 0
	}
	var failed error
	plain := func(match string) string { return f.plain(match, arguments, args, first) }
	filled := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		if failed != nil {
			return match
		}
		m := placeholder.FindStringSubmatch(match)
		switch {
		case m[1] != "":
			said, err := f.Run(inCommand.ReplaceAllStringFunc(m[1], plain))
			failed = err
			return said
		case m[3] != "":
			said, err := f.Run(inCommand.ReplaceAllStringFunc(m[3], plain))
			failed = err
			return m[2] + said
		case m[5] != "":
			said, err := f.file(m[5], plain)
			failed = err
			return m[4] + said
		default:
			return plain(match)
		}
	})
	return filled, failed
}

// plain returns the value of an argument or a variable.
func (f *Filling) plain(match, arguments string, args []string, first int) string {
	m := inCommand.FindStringSubmatch(match)
	switch {
	case m == nil:
		return match
	case m[1] != "":
		n, _ := strconv.Atoi(m[1]) // two digits
		return nth(args, n)
	case m[2] != "" && m[3] == "":
		n, _ := strconv.Atoi(m[2]) // one digit
		return nth(args, n-first)
	case m[2] != "": // such as $100
		return match
	case m[4] != "":
		if value, ok := f.Variables[m[4]]; ok {
			return value
		}
		return match
	default:
		return arguments
	}
}

func nth(args []string, n int) string {
	if n < 0 || n >= len(args) {
		return ""
	}
	return args[n]
}

// file returns the text for @name: the name and the content of the file. It returns @name if
// there is no such file.
func (f *Filling) file(name string, plain func(string) string) (string, error) {
	name = inCommand.ReplaceAllStringFunc(name, plain)
	path := strings.TrimRight(name, ".:!?")
	full := path
	if !filepath.IsAbs(path) {
		full = filepath.Join(f.Project, filepath.FromSlash(path))
	}
	if info, err := os.Stat(full); err != nil || !info.Mode().IsRegular() || f.Read == nil {
		return "@" + name, nil //nolint:nilerr // it is no file, such as a name of a person
	}
	text, err := f.Read(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%s\n<file path=%q>\n%s\n</file>\n", path, name[len(path):], path, text), nil
}

// splitWords splits a text at spaces. A text in quotes is one word.
func splitWords(text string) []string {
	var words []string
	var word strings.Builder
	quote, in := rune(0), false
	for _, c := range text {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case (c == '"' || c == '\'') && !in:
			quote, in = c, true
		case unicode.IsSpace(c):
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			in = true
			word.WriteRune(c)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}
