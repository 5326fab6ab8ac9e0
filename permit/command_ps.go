package permit

import (
	"os/user"
	"strings"
)

// processesCommand judges ps. Listing processes is harmless. But with some options, ps
// also shows the environment of the user's processes, which may contain secrets.
func processesCommand(c *invoked) {
	c.usesAll()
	p := psReader{}
	for rest := c.args; len(rest) > 0; {
		rest = rest[min(1+p.word(rest[0], rest[1:]), len(rest)):]
	}
	switch {
	case p.environment:
		c.zone(ZoneMachine, "it shows the environment of other processes, which may contain secrets")
	case p.unsure:
		c.unknown("cannot determine whether it shows the environment of other processes")
	}
}

// psReader scans the arguments of ps. An option may have one dash, two dashes or none.
type psReader struct {
	environment bool // ps shows environment variables
	unsure      bool // a word is unknown
}

// word parses an argument. It returns how many of the following arguments belong to this
// argument.
func (p *psReader) word(a arg, behind []arg) int {
	if !a.known || a.pattern {
		p.unsure = true
		return 0
	}
	next := arg{}
	if len(behind) > 0 {
		next = behind[0]
	}
	switch text := a.text; {
	case strings.HasPrefix(text, "--"):
		return p.long(text[2:], next)
	case strings.HasPrefix(text, "-"):
		return p.dashed(text[1:], next)
	case strings.Trim(text, "0123456789,") == "": // process numbers
		return 0
	default:
		return p.bare(text, next)
	}
}

func (p *psReader) long(text string, next arg) int {
	name, value, joined := strings.Cut(text, "=")
	switch {
	case name == "format" && joined:
		p.columns(literal(value))
	case name == "format":
		p.columns(next)
		return 1
	case oneOf(name, "pid ppid sid tty user User group Group quick-pid sort cols columns width rows lines") && !joined:
		return 1
	}
	return 0
}

// dashed parses -ef, -o pid,args and -p 1. If ps does not understand such a word, for
// example -xe or -auxe, ps treats the letters as options without a dash.
func (p *psReader) dashed(letters string, next arg) int {
	for i := range len(letters) {
		joined := literal(letters[i+1:])
		switch letter := letters[i]; {
		case letter == 'E': // an option of BSD and macOS
			p.environment = true
		case letter == 'o' || letter == 'O':
			value, taken := orNext(joined, next)
			p.columns(value)
			return taken
		case letter == 'C':
			_, taken := orNext(joined, next)
			return taken
		case strings.IndexByte("pqstuUgGnk", letter) >= 0:
			value, taken := orNext(joined, next)
			if _, err := user.Lookup(value.text); value.known && (letter != 'u' && letter != 'U' || err != nil) {
				p.bare(strings.TrimLeft(value.text, "0123456789,"), arg{})
			}
			return taken
		case strings.IndexByte("AFHLMNPTVZacdefjlmwyz", letter) < 0:
			return p.bare(letters, next)
		}
	}
	return 0
}

// orNext returns the value of an option: the rest of the word, or the next word.
func orNext(joined, next arg) (value arg, taken int) {
	if joined.text != "" {
		return joined, 0
	}
	return next, 1
}

// bare parses options without a dash, such as aux and axo pid,args. The letter e shows
// the environment.
func (p *psReader) bare(letters string, next arg) int {
	for i := range len(letters) {
		switch letter := letters[i]; letter {
		case 'e':
			p.environment = true
		case 'o', 'O', 'k', 'p', 'q', 't', 'U':
			value, taken := orNext(literal(letters[i+1:]), next)
			if letter == 'o' || letter == 'O' {
				p.columns(value)
			}
			return taken
		}
	}
	return 0
}

func (p *psReader) columns(list arg) {
	p.unsure = p.unsure || !list.known && list.text != ""
	p.environment = p.environment || strings.Contains(list.text, "env")
}
