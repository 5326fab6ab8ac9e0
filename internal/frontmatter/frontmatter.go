// Package frontmatter reads the YAML mapping at the beginning of Markdown files. It keeps
// the line of every value, so that errors can name the line. It tolerates and reports
// mistakes whose meaning is clear, because other people's files often have them.
//
// A small reader reads simple files, which are the most common. A YAML library reads the
// others.
package frontmatter

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limit is the maximum size of the YAML in bytes. With a malicious text, a YAML library can
// need time that grows with the square of the length.
const Limit = 64 << 10

// Kind is the type of a value.
type Kind uint8

// These are the kinds of values.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"nothing", "true or false", "a number", "a number", "a text", "a list", "a mapping"}[k]
}

// Value is a value of a document.
type Value struct {
	Kind Kind
	// Text is the text of a string, or another scalar as it is written in the file.
	Text string
	// Line is the line where the value begins. The first line of the file is 1.
	Line int
	List []Value
	Map  []Field
}

// Field is a key with its value.
type Field struct {
	Key   string
	Line  int
	Value Value
}

// Document is the content of a file.
type Document struct {
	// Fields are the fields of the mapping, in order, without duplicates.
	Fields []Field
	// Found reports whether the file has frontmatter, even if it is empty.
	Found bool
	// Body is the text after the frontmatter, and BodyLine is the number of its first line.
	Body     string
	BodyLine int
	// Notes are the mistakes that were tolerated.
	Notes []Note
}

// Note is a mistake that was tolerated, and its line.
type Note struct {
	Line    int
	Message string
}

// Error is a mistake that makes a file unreadable, and its line.
type Error struct {
	Line    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

func fail(line int, format string, args ...any) error {
	return &Error{line, fmt.Sprintf(format, args...)}
}

const byteOrderMark = "\ufeff"

// Parse reads a Markdown file. The file has frontmatter if its first line is ---. The
// frontmatter ends at the next such line. Errors are of type *Error.
func Parse(text string) (*Document, error) {
	d := new(Document)
	text = d.withoutMark(text)
	first, rest, _ := cutLine(text)
	if !isFence(first) {
		d.Body, d.BodyLine = text, 1
		return d, checkText(text, 1)
	}
	d.Found = true
	head, line := rest, 2
	for {
		here := len(head) - len(rest)
		text, after, more := cutLine(rest)
		if isFence(text) {
			d.Body, d.BodyLine = after, line+1
			head = head[:here]
			break
		}
		if !more {
			return nil, fail(1, "the frontmatter that begins here is never closed: add a line --- after it")
		}
		rest, line = after, line+1
	}
	if err := checkText(head, 2); err != nil {
		return nil, err
	}
	if err := checkText(d.Body, d.BodyLine); err != nil {
		return nil, err
	}
	var err error
	d.Fields, err = d.mapping(head, 2)
	return d, err
}

// ParseYAML reads a file that is one YAML mapping. Errors are of type *Error.
func ParseYAML(text string) (*Document, error) {
	d := new(Document)
	text = d.withoutMark(text)
	if err := checkText(text, 1); err != nil {
		return nil, err
	}
	d.Found = true
	var err error
	d.Fields, err = d.mapping(text, 1)
	return d, err
}

// ParseYAMLWithBody reads a YAML file that is one mapping, or that has frontmatter and a
// body like a Markdown file. In the second form the first line is ---, another such line
// follows, and there is text after it. BodyLine is set only in the second form. Errors are
// of type *Error.
func ParseYAMLWithBody(text string) (*Document, error) {
	if !hasBody(strings.TrimPrefix(text, byteOrderMark)) {
		return ParseYAML(text)
	}
	return Parse(text)
}

// hasBody reports whether there is text after the frontmatter.
func hasBody(text string) bool {
	first, rest, more := cutLine(text)
	if !isFence(first) {
		return false
	}
	for more {
		var line string
		if line, rest, more = cutLine(rest); isFence(line) {
			return strings.TrimSpace(rest) != ""
		}
	}
	return false
}

// Field returns the value of a key, or nil.
func (d *Document) Field(key string) *Value {
	for i := range d.Fields {
		if d.Fields[i].Key == key {
			return &d.Fields[i].Value
		}
	}
	return nil
}

func (d *Document) withoutMark(text string) string {
	if !strings.HasPrefix(text, byteOrderMark) {
		return text
	}
	d.Notes = append(d.Notes, Note{1, "the file begins with a byte order mark"})
	return text[len(byteOrderMark):]
}

// mapping reads YAML. line is the number of its first line in the file.
func (d *Document) mapping(head string, line int) ([]Field, error) {
	if len(head) > Limit {
		return nil, fail(line, "the YAML has %d bytes: the limit is %d", len(head), Limit)
	}
	if fields, ok := readPlain(head, line); ok {
		return fields, nil
	}
	fields, err := readYAML(head, line)
	if err == nil {
		return fields, nil
	}
	quoted, lines := quoteColons(head, line)
	if len(lines) == 0 {
		return nil, err
	}
	fields, again := readYAML(quoted, line)
	if again != nil {
		return nil, err // report the error of the original text, not of the rewritten one
	}
	for _, at := range lines {
		d.Notes = append(d.Notes, Note{at, "a value with a colon in it is not quoted: put quotes around it"})
	}
	return fields, nil
}

// isFence reports whether a line is ---, ignoring white space at its end.
func isFence(line string) bool {
	return strings.HasPrefix(line, "---") && strings.TrimRight(line[3:], " \t\r") == ""
}

// cutLine returns the first line of a text without its line end, and the rest.
func cutLine(text string) (line, rest string, more bool) {
	line, rest, more = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest, more
}

// checkText returns an error if a text is not UTF-8. Such a text could not be sent or
// stored.
func checkText(text string, line int) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return fail(line+strings.Count(text[:i], "\n"), "the file is not UTF-8: it contains the byte %#x", text[i])
		}
		i += size
	}
	return nil
}
