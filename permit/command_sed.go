package permit

import "strings"

func sedCommands(t table) { t.add("sed gsed", sedCommand) }

// sedCommand judges sed. It understands the options of GNU sed and BSD sed.
func sedCommand(c *invoked) {
	o := c.options(c.args, "n quiet silent e= expression= f= file= E r regexp-extended i=? in-place=? I=? l= line-length= s separate u unbuffered z null-data "+
		"a posix debug sandbox follow-symlinks b binary help version")
	files := o.rest
	scripts := o.values("e", "expression")
	for _, f := range o.values("f", "file") {
		if f.known && f.text == "-" || isStdin(f) {
			scripts = append(scripts, c.stdin)
			continue
		}
		c.code(f)
	}
	if !o.has("e", "expression", "f", "file") && len(files) > 0 {
		scripts, files = files[:1:1], files[1:]
		if scripts[0].text == "" && o.has("i", "I") && len(files) > 0 { // on BSD, -i takes the next word as a suffix
			scripts, files = append(scripts, files[0]), files[1:]
		}
	}
	c.sedScript(scripts, o.has("sandbox"), o.has("posix"))
	if !o.has("i", "in-place", "I") {
		c.readAll(files)
		return
	}
	for _, suffix := range o.values("i", "in-place", "I") {
		c.writeJoined(files, arg{text: suffix.text, known: suffix.known || suffix == (arg{})})
	}
	c.zone(ZoneWorkspace, "")
	c.writeAll(files)
}

// sedScript records what a sed script does besides editing.
func (c *invoked) sedScript(parts []arg, sandbox, posix bool) {
	texts := make([]string, len(parts))
	for i, p := range parts {
		if !p.known {
			c.unknown("cannot determine what the sed script does")
			return
		}
		texts[i] = p.text
	}
	s := sedReader{text: strings.Join(texts, "\n"), posix: posix}
	s.commands()
	if sandbox {
		return // with --sandbox, sed refuses to read, write or run anything else
	}
	for _, f := range s.reads {
		c.read(literal(f))
	}
	for _, f := range s.writes {
		c.write(literal(f))
	}
	if s.runs {
		c.unknown("the sed script runs commands")
		if s.command != "" {
			c.child(literal(s.command))
		}
	}
	if s.lost {
		c.unknown("cannot determine what the sed script does")
	}
}

type sedReader struct {
	text          string
	at            int
	reads, writes []string
	runs          bool
	command       string // commands that the script runs
	lost          bool   // the reader does not understand the script
	posix         bool   // a label may contain a semicolon
}

func (s *sedReader) more() bool { return s.at < len(s.text) && !s.lost }

// peek returns the next character, or 0 at the end.
func (s *sedReader) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *sedReader) skip(chars string) {
	for s.at < len(s.text) && strings.IndexByte(chars, s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *sedReader) line() string {
	end := strings.IndexByte(s.text[s.at:], '\n')
	if end < 0 {
		end = len(s.text) - s.at
	}
	text := s.text[s.at : s.at+end]
	s.at += end
	return strings.TrimLeft(text, " \t")
}

func (s *sedReader) commands() {
	for s.more() {
		s.skip(" \t\n;")
		if !s.more() {
			return
		}
		s.addresses()
		if s.more() {
			s.one()
		}
	}
}

func (s *sedReader) addresses() {
	for s.more() {
		s.skip(" \t")
		switch c := s.peek(); {
		case c >= '0' && c <= '9' || c == '$' || c == ',' || c == '+' || c == '~' || c == '!':
			s.at++
		case c == '/':
			s.at++
			s.delimited('/', true)
			s.skip("IM")
		case c == '\\' && s.at+1 < len(s.text):
			end := s.text[s.at+1]
			s.at += 2
			s.delimited(end, true)
			s.skip("IM")
		default:
			return
		}
	}
}

// delimited skips to the next delimiter that is not escaped. Versions of sed disagree
// about a delimiter in the brackets of a regular expression, so the reader gives up
// there.
func (s *sedReader) delimited(end byte, regexp bool) {
	bracket := -1
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at++
		case c == '[' && regexp && bracket < 0:
			bracket = s.at
		case c == ']' && bracket >= 0 && s.at > bracket+1 && (s.at != bracket+2 || s.text[bracket+1] != '^'):
			bracket = -1
		case c == end && bracket >= 0:
			s.lost = true
			return
		case c == end:
			s.at++
			return
		case c == '\n' && regexp:
			s.lost = true
			return
		}
	}
	s.lost = true
}

func (s *sedReader) one() {
	c := s.peek()
	s.at++
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case '#':
		s.line()
	case ':', 'b', 't', 'T', 'v':
		s.label()
	case 'q', 'Q', 'l', 'L':
		s.skip(" \t0123456789")
	case 'a', 'i', 'c':
		s.insert()
	case 'r', 'R':
		s.reads = append(s.reads, s.line())
	case 'w', 'W':
		s.writes = append(s.writes, s.line())
	case 'e':
		s.runs, s.command = true, s.line()
	case 's':
		s.substitute()
	case 'y':
		end := s.peek()
		s.at++
		s.delimited(end, false)
		s.delimited(end, false)
	default:
		s.lost = true
	}
}

// label skips a label. In GNU sed, a blank ends the label and a command may follow. Other
// versions read the rest of the line as the label. The reader gives up if this makes a
// difference.
func (s *sedReader) label() {
	s.skip(" \t")
	for s.at < len(s.text) && s.text[s.at] > ' ' && s.text[s.at] != ';' && s.text[s.at] != '}' {
		s.at++
	}
	s.skip(" \t")
	switch c := s.peek(); c {
	case 0, '\n', '}', '#':
	case ';':
		s.lost = s.lost || s.posix
	default:
		s.lost = true
	}
}

// insert skips the text of a, i or c. A backslash at the end of a line continues the
// text.
func (s *sedReader) insert() {
	for s.more() {
		line := s.line()
		s.at++
		backslashes := len(line) - len(strings.TrimRight(line, `\`))
		if backslashes%2 == 0 {
			return
		}
	}
}

// substitute parses the rest of s/regexp/replacement/flags.
func (s *sedReader) substitute() {
	end := s.peek()
	s.at++
	if end == '\\' || end == '\n' || end == 0 {
		s.lost = true
		return
	}
	s.delimited(end, true)
	s.delimited(end, false)
	for s.more() {
		switch c := s.peek(); {
		case c == 'e':
			s.runs = true
		case c == 'w':
			s.at++
			s.writes = append(s.writes, s.line())
			return
		case strings.IndexByte("gpiImM0123456789", c) >= 0:
		case strings.IndexByte(" \t\n;}#", c) >= 0 || c == 0:
			return
		default:
			s.lost = true
			return
		}
		s.at++
	}
}
