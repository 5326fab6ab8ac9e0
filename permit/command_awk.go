package permit

import "strings"

func awkCommands(t table) { t.add("awk gawk mawk nawk original-awk goawk", awkCommand) }

// awkCommand judges awk. Its programs can run commands, and read and write files.
func awkCommand(c *invoked) {
	o := c.options(c.args, "+F= field-separator= v= assign= f= file= e= source= i= include= l=! load=! E= exec= o=?> pretty-print=?> d=?> dump-variables=?> "+
		"p=?> profile=?> D=?! debug=?! b c C g h I k L=? lint=? M n N O P r s S sandbox t V version W= posix re-interval csv characters-as-bytes help optimize bignum "+
		"non-decimal-data traditional")
	c.known(o.rest)
	for _, f := range o.values("f", "file", "E", "exec") {
		if f.known && f.text == "-" || isStdin(f) {
			c.awkProgram(c.stdin)
			continue
		}
		c.code(f)
	}
	files := o.rest
	programs := o.values("e", "source")
	if !o.has("f", "file", "e", "source", "E", "exec") && len(files) > 0 {
		programs, files = files[:1:1], files[1:]
	}
	for _, w := range o.values("W") { // -W is another way to write long options
		if w.text != "version" && w.text != "posix" && w.text != "lint" {
			c.unknown("Belay does not know what -W " + shown(w.text) + " does")
		}
	}
	inplace := false
	for _, i := range o.values("i", "include") {
		if i.text == "inplace" {
			inplace = true
			continue
		}
		c.code(i)
	}
	for _, p := range programs {
		c.awkProgram(p)
	}
	for _, f := range files {
		switch name, _, assigned := strings.Cut(f.text, "="); {
		case assigned && isName(name):
		case inplace:
			c.zone(ZoneWorkspace, "")
			c.write(f)
		default:
			c.read(f)
		}
	}
}

// isName reports whether a text can be the name of a variable.
func isName(text string) bool {
	for i := range len(text) {
		c := text[i] | 0x20
		if (c < 'a' || c > 'z') && text[i] != '_' && (i == 0 || text[i] < '0' || text[i] > '9') {
			return false
		}
	}
	return text != ""
}

// awkProgram records what an awk program does besides printing.
func (c *invoked) awkProgram(p arg) {
	if !p.known {
		c.unknown("cannot determine what the awk program does")
		return
	}
	r := awkReader{text: p.text}
	r.program()
	for _, f := range r.reads {
		c.read(literal(f))
	}
	for _, f := range r.writes {
		c.write(literal(f))
	}
	for _, command := range r.runs {
		c.child(literal(command))
	}
	if r.why != "" {
		c.unknown(r.why)
	}
}

// awkReader scans an awk program token by token. It need not understand the program. But
// it must not mistake code for a string or a regular expression.
type awkReader struct {
	text   string
	at     int
	last   string // the previous token; "x" means an operand
	prints bool   // inside a print statement, where > writes to a file
	depth  int    // number of open parentheses
	unsure bool   // it is unknown whether a slash means division
	reads  []string
	writes []string
	runs   []string
	why    string // why the program is dangerous, or empty
}

func (r *awkReader) program() {
	for r.at < len(r.text) {
		r.token()
	}
	if r.unsure && (strings.ContainsAny(r.text, "|>@") || strings.Contains(r.text, "system") || strings.Contains(r.text, "getline")) {
		r.fail("cannot determine what the awk program does")
	}
}

func (r *awkReader) fail(why string) {
	if r.why == "" {
		r.why = why
	}
}

func (r *awkReader) token() {
	c := r.text[r.at]
	switch {
	case c == ' ' || c == '\t' || c == '\r':
		r.at++
	case c == '\\' && r.at+1 < len(r.text) && (r.text[r.at+1] == '\n' || r.text[r.at+1] == '\r'):
		r.at += 2
	case c == '#':
		end := strings.IndexByte(r.text[r.at:], '\n')
		if end < 0 {
			end = len(r.text) - r.at
		}
		r.at += end
	case c == '"':
		r.str()
		r.last = "x"
	case c == '/':
		r.slash()
	case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
		r.word()
	case c >= '0' && c <= '9' || c == '.':
		r.at++
		r.last = "x"
	default:
		r.operator(c)
	}
}

// str scans a string, and returns it if it contains no escapes.
func (r *awkReader) str() (text string, plain bool) {
	from := r.at + 1
	plain = true
	for r.at = from; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case '\\':
			plain = false
			r.at++
		case '\n':
			r.fail("cannot determine what the awk program does")
		case '"':
			r.at++
			return r.text[from : r.at-1], plain
		}
	}
	r.at = len(r.text)
	return "", false
}

// slash scans a division or a regular expression.
func (r *awkReader) slash() {
	switch r.last {
	case "x", "]":
		r.at++
		r.last = "/"
		return
	case ")", "++", "--", "length":
		r.unsure = true
		r.at++
		r.last = "/"
		return
	}
	bracket := false
	for r.at++; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case '\\':
			r.at++
		case '[':
			bracket = true
		case ']':
			bracket = false
		case '/':
			if bracket { // some versions of awk end the regular expression here
				r.unsure = true
			}
			r.at++
			r.last = "x"
			return
		case '\n':
			r.fail("cannot determine what the awk program does")
		}
	}
}

func (r *awkReader) word() {
	from := r.at
	for r.at < len(r.text) && (r.text[r.at] == '_' || r.text[r.at]|0x20 >= 'a' && r.text[r.at]|0x20 <= 'z' || r.text[r.at] >= '0' && r.text[r.at] <= '9') {
		r.at++
	}
	switch name := r.text[from:r.at]; name {
	case "system":
		r.fail("the awk program runs commands")
		r.command(r.at)
	case "getline":
		r.getline()
	case "ARGV", "ARGC", "ARGIND":
		r.fail("the awk program chooses itself which files it reads")
	case "print", "printf":
		r.prints, r.depth, r.last = true, 0, name
	case "return", "else", "do", "in", "case", "BEGIN", "END", "delete", "exit", "while", "if", "for", "switch":
		r.last = name
	case "length":
		r.last = name
	default:
		r.last = "x"
	}
}

// getline scans a getline. Without a file, getline reads the next record, which is
// harmless. getline target < "file" reads a file. If the scanner does not understand the
// text after getline, that text may name a file.
func (r *awkReader) getline() {
	r.last = "x"
	inner := awkReader{text: r.text, at: r.at}
	if !inner.target() {
		r.fail("cannot determine which file the awk program reads with getline: write getline x < \"file\"")
		return
	}
	rest := inner.text[inner.at:]
	switch {
	case strings.HasPrefix(rest, "<") && !strings.HasPrefix(rest, "<="):
		inner.at++
		inner.blanks()
		if inner.at < len(inner.text) && inner.text[inner.at] == '"' {
			if file, plain := inner.str(); plain && inner.endsWith(");}>\n#") {
				r.reads = append(r.reads, file)
				return
			}
		}
		r.fail("cannot determine which file the awk program reads with getline: write getline x < \"file\"")
	case !inner.endsWith(");}>\n#&|,]?:=!"):
		r.fail("cannot determine which file the awk program reads with getline: write getline x < \"file\"")
	}
}

// target scans the target of a getline: nothing, a variable, an array element or a field.
// It returns false if it does not understand the target.
func (r *awkReader) target() bool {
	r.blanks()
	field := r.at < len(r.text) && r.text[r.at] == '$'
	if field {
		r.at++
	}
	from := r.at
	for r.at < len(r.text) && isName("x"+r.text[r.at:r.at+1]) {
		r.at++
	}
	named := r.at > from
	if !named && field && !r.bracketed('(', ')') {
		return false
	}
	for named && r.at < len(r.text) && r.text[r.at] == '[' {
		if !r.bracketed('[', ']') {
			return false
		}
	}
	r.blanks()
	return true
}

// bracketed scans the text between a pair of brackets. It returns false if there are no
// brackets, or if something inside could hide the closing bracket.
func (r *awkReader) bracketed(open, end byte) bool {
	depth := 0
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			if _, plain := r.str(); !plain {
				return false
			}
			r.at--
		case c == open:
			depth++
		case c == end:
			if depth--; depth == 0 {
				r.at++
				return true
			}
		case depth == 0, strings.IndexByte("/\\\n#<>|{};", c) >= 0:
			return false
		}
	}
	return false
}

func (r *awkReader) blanks() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\t') {
		r.at++
	}
}

// command records the command in system("text"), or after a pipe.
func (r *awkReader) command(at int) {
	inner := awkReader{text: r.text, at: at}
	for inner.at < len(inner.text) && strings.IndexByte(" \t(", inner.text[inner.at]) >= 0 {
		inner.at++
	}
	if inner.at < len(inner.text) && inner.text[inner.at] == '"' {
		if text, plain := inner.str(); plain {
			r.runs = append(r.runs, text)
		}
	}
}

func (r *awkReader) operator(c byte) {
	next := byte(0)
	if r.at+1 < len(r.text) {
		next = r.text[r.at+1]
	}
	switch {
	case c == '|' && next == '|', c == '&' && next == '&', (c == '+' || c == '-') && next == c:
		r.last = r.text[r.at : r.at+2]
		r.at += 2
		return
	case c == '|':
		r.fail("the awk program runs commands")
		at := r.at + 1
		for at < len(r.text) && strings.IndexByte("& \t", r.text[at]) >= 0 {
			at++
		}
		r.command(at)
	case c == '>' && r.prints && r.depth == 0:
		r.redirect()
		return
	case c == '@':
		r.fail("the awk program loads other files, or calls a function by a computed name")
	case c == '\n' && oneOf(r.last, ", && || ? :"): // the statement continues on the next line
	case c == ';' || c == '}' || c == '\n' || c == '{':
		r.prints = false
	case c == '(':
		r.depth++
	case c == ')':
		r.depth--
	}
	r.at++
	r.last = string(c)
	if c >= 0x80 {
		r.last = "x"
	}
}

// redirect scans > "file" and >> "file".
func (r *awkReader) redirect() {
	for r.at < len(r.text) && strings.IndexByte("> \t", r.text[r.at]) >= 0 {
		r.at++
	}
	r.last = "x"
	if r.at < len(r.text) && r.text[r.at] == '"' {
		if text, plain := r.str(); plain && r.ends() {
			r.writes = append(r.writes, text)
			return
		}
	}
	r.fail("cannot determine which files the awk program writes")
}

// ends reports whether the string that was just scanned is the whole file name, without a
// concatenation.
func (r *awkReader) ends() bool { return r.endsWith(";}\n#") }

// endsWith reports whether the program ends here, or one of the characters follows.
func (r *awkReader) endsWith(chars string) bool {
	rest := strings.TrimLeft(r.text[r.at:], " \t")
	return rest == "" || strings.IndexByte(chars, rest[0]) >= 0
}
