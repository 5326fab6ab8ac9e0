package declare

import (
	"fmt"
	"strings"
)

// How much a hook may print.
const (
	mostOutput = 1 << 20
	mostErrors = 64 << 10
	// mostSearched is how much output is searched for denials, mostDiscarded how much is
	// read at all. A hook that prints too much may still deny, later in its output or by
	// its exit code. A program that prints even more is stopped.
	mostSearched  = 32 << 20
	mostDiscarded = 256 << 20
	// mostShown is how much of the end of standard error a failure shows.
	mostShown = 2 << 10
)

// output collects a hook's answer. It keeps as much as an answer may have, and searches
// all of it for denials: as printed, and without terminal escape sequences.
type output struct {
	kept  []byte
	total int
	raw   search
	plain search
	clean cleaner
}

func newOutput() *output {
	o := new(output)
	o.clean.to = &o.plain
	return o
}

// outputOf makes an output of complete bytes.
func outputOf(text []byte) *output {
	o := newOutput()
	_, _ = o.Write(text) // it fails only beyond what memory should hold
	return o
}

// Write takes printed bytes. It fails if there are too many.
func (o *output) Write(p []byte) (int, error) {
	o.kept = append(o.kept, p[:min(len(p), mostOutput-len(o.kept))]...)
	if o.total <= mostSearched {
		_, _ = o.raw.Write(p)   // the search does not fail
		_, _ = o.clean.Write(p) // likewise
	}
	o.total += len(p)
	if o.total > mostDiscarded {
		return 0, errEndless
	}
	return len(p), nil
}

// denials returns the denials in all of the output. Do not call Write
// afterwards.
func (o *output) denials() *denials {
	_ = o.clean.Close() // it does not fail
	found := o.raw.denials
	found.join(&o.plain.denials)
	return &found
}

// tooMuch returns the failure of a program that printed too much, or nil.
func tooMuch(stdout *output, stderr *errorOutput) error {
	switch {
	case stdout.total > mostOutput:
		return invalid(fmt.Sprintf("it printed more than %d KiB to standard output", mostOutput>>10), nil)
	case stderr.total > mostErrors:
		return invalid(fmt.Sprintf("it printed more than %d KiB to standard error", mostErrors>>10), nil)
	default:
		return nil
	}
}

// errEndless is the error of a program that does not stop printing.
var errEndless = fmt.Errorf("it printed more than %d MiB and was stopped", mostDiscarded>>20)

// errorOutput collects standard error. It keeps the beginning, which is the reason of a
// denial, and the end, which a failure shows.
type errorOutput struct {
	head  []byte
	tail  tail
	total int
}

// Write takes printed bytes. It fails if there are too many.
func (o *errorOutput) Write(p []byte) (int, error) {
	o.total += len(p)
	o.head = append(o.head, p[:min(len(p), mostErrors-len(o.head))]...)
	o.tail.add(p)
	if o.total > mostDiscarded {
		return 0, errEndless
	}
	return len(p), nil
}

// tail keeps the end of the output, and somewhat more than is shown: a secret that is
// cut in two would not be found.
type tail []byte

func (t *tail) add(p []byte) {
	const most = 2 * mostShown
	*t = append(*t, p[max(0, len(p)-most):]...)
	if len(*t) > 2*most { // rarely, so that each byte is moved about once
		*t = append((*t)[:0], (*t)[len(*t)-most:]...)
	}
}

// shown returns the end, cleaned for people.
func (t *tail) shown(r *redactor) string {
	text := printedText(*t, r)
	if cut := len(text) - mostShown; cut > 0 {
		text = strings.TrimSpace(strings.ToValidUTF8(text[cut:], "")) // the cut may split a character
	}
	return text
}

// printedText returns output for people: without terminal escape sequences and without
// secrets.
func printedText(printed []byte, r *redactor) string {
	return r.text(strings.TrimSpace(strings.ToValidUTF8(string(withoutEscapes(printed)), "\ufffd")))
}
