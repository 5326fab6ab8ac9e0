package declare

import (
	"bytes"
	"fmt"
	"strings"
)

// How much a hook may print, in bytes.
const (
	mostOutput = 1 << 20
	mostErrors = 64 << 10
	// mostSearched is how much output is searched for denials. mostDiscarded is how much
	// output is read at all. Both are larger than mostOutput: a hook that prints too much
	// may still deny later, in its output or by its exit code. A hook that exceeds
	// mostDiscarded is stopped.
	mostSearched  = 32 << 20
	mostDiscarded = 256 << 20
	// mostShown is how much of the end of standard error an error shows.
	mostShown = 2 << 10
)

// output collects the output of a hook. It keeps up to mostOutput bytes. It searches the
// output for denials twice: as printed, and without terminal escape sequences.
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

// outputOf makes an output of bytes that are already complete.
func outputOf(text []byte) *output {
	o := newOutput()
	_, _ = o.Write(text) // fails only for a very large text
	return o
}

// denialsIn returns the denials in a complete text. Most answers have none, and a quick look
// at their bytes shows this: every denial has one of three keys, which can be spelled in
// another way only with a backslash or with bytes that are not printable ASCII.
func denialsIn(text []byte) *denials {
	plain := true
	for _, c := range text {
		plain = plain && c >= ' ' && c < 0x7f && c != '\\'
	}
	if plain && !bytes.Contains(text, []byte("decision")) && !bytes.Contains(text, []byte("continue")) && !bytes.Contains(text, []byte("blocked")) {
		return new(denials)
	}
	return outputOf(text).denials()
}

// Write adds printed bytes. It fails after mostDiscarded bytes.
func (o *output) Write(p []byte) (int, error) {
	o.kept = append(o.kept, p[:min(len(p), mostOutput-len(o.kept))]...)
	if o.total <= mostSearched {
		_, _ = o.raw.Write(p)   // a search returns no error
		_, _ = o.clean.Write(p) // a search returns no error
	}
	o.total += len(p)
	if o.total > mostDiscarded {
		return 0, errEndless
	}
	return len(p), nil
}

// denials returns all denials in the output. Do not call Write after it.
func (o *output) denials() *denials {
	_ = o.clean.Close() // a search returns no error
	found := o.raw.denials
	found.join(&o.plain.denials)
	return &found
}

// tooMuch returns an error if a program printed too much, or nil.
func tooMuch(stdout *output, stderr *errorOutput) error {
	switch {
	case stdout.total > mostOutput:
		return invalid(fmt.Sprintf("the program printed more than %d KiB to standard output", mostOutput>>10), nil)
	case stderr.total > mostErrors:
		return invalid(fmt.Sprintf("the program printed more than %d KiB to standard error", mostErrors>>10), nil)
	default:
		return nil
	}
}

// errEndless means that a program was stopped because it printed far too much.
var errEndless = fmt.Errorf("the program printed more than %d MiB and was stopped", mostDiscarded>>20)

// errorOutput collects standard error. It keeps the beginning, which becomes the reason
// of a denial. It also keeps the end, which the error of a failed hook shows.
type errorOutput struct {
	head  []byte
	tail  tail
	total int
}

// Write adds printed bytes. It fails after mostDiscarded bytes.
func (o *errorOutput) Write(p []byte) (int, error) {
	o.total += len(p)
	o.head = append(o.head, p[:min(len(p), mostErrors-len(o.head))]...)
	o.tail.add(p)
	if o.total > mostDiscarded {
		return 0, errEndless
	}
	return len(p), nil
}

// tail keeps the end of the output. It keeps more than is shown: otherwise the cut could
// split a secret, and the rest of the secret would not be recognized.
type tail []byte

func (t *tail) add(p []byte) {
	const most = 2 * mostShown
	*t = append(*t, p[max(0, len(p)-most):]...)
	if len(*t) > 2*most { // cut rarely, so that each byte is moved only about once
		*t = append((*t)[:0], (*t)[len(*t)-most:]...)
	}
}

// shown returns the end of the output for users, without secrets.
func (t *tail) shown(r *redactor) string {
	text := printedText(*t, r)
	if cut := len(text) - mostShown; cut > 0 {
		text = strings.TrimSpace(strings.ToValidUTF8(text[cut:], "")) // the cut may have split a character
	}
	return text
}

// printedText returns output for users, without terminal escape sequences and without
// secrets.
func printedText(printed []byte, r *redactor) string {
	return r.text(strings.TrimSpace(strings.ToValidUTF8(string(withoutEscapes(printed)), "\ufffd")))
}
