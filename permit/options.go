package permit

import (
	"slices"
	"strings"
)

type option struct {
	name  string // without dashes
	kind  string // the text after the name in the list, such as =<; see invoked.options
	value arg    // the zero arg if there is no value
	short bool   // name may be an abbreviation
}

type options struct {
	given []option
	// rest are the arguments that are not options.
	rest []arg
	// strange is the first option that is not in the list, or whose value is uncertain.
	strange string
	// wild is an argument that could expand to an option, because a file name may begin
	// with a dash.
	wild string
}

func (o *options) has(names ...string) bool {
	for i := range o.given {
		if slices.Contains(names, o.given[i].name) {
			return true
		}
	}
	return false
}

// may is like has, but also accepts abbreviations of the names. Judges use it for
// dangerous options.
func (o *options) may(names ...string) bool {
	for i := range o.given {
		if g := &o.given[i]; slices.ContainsFunc(names, func(n string) bool { return n == g.name || g.short && strings.HasPrefix(n, g.name) }) {
			return true
		}
	}
	return false
}

// values returns the values of all options with one of the names, in order.
func (o *options) values(names ...string) []arg {
	var all []arg
	for i := range o.given {
		if slices.Contains(names, o.given[i].name) {
			all = append(all, o.given[i].value)
		}
	}
	return all
}

// value returns the last value of an option with one of the names.
func (o *options) value(names ...string) (arg, bool) {
	all := o.values(names...)
	if len(all) == 0 {
		return arg{}, false
	}
	return all[len(all)-1], true
}

// from returns the arguments that are not options, starting with number n.
func (o *options) from(n int) []arg { return o.rest[min(n, len(o.rest)):] }

func (o *options) put(name, kind string, value arg) {
	o.given = append(o.given, option{name: name, kind: kind, value: value})
}

// parser parses the arguments of a command.
type parser struct {
	*options
	args     []arg
	at       int
	list     string
	anything bool // accept options that are not in list
	first    bool // options end at the first word that is not an option
	words    bool // an option is a whole word, with one or two dashes
	ended    bool // no more options follow
}

// parseOptions parses arguments. See invoked.options.
func parseOptions(args []arg, list string) *options {
	// parseOptions runs for every command of a line. With this struct, most commands need
	// only one allocation.
	room := &struct {
		options
		given [2]option
		rest  [3]arg
	}{}
	room.options.given, room.options.rest = room.given[:0], room.rest[:0]
	p := parser{options: &room.options, args: args}
	for list != "" && strings.IndexByte("+*-", list[0]) >= 0 {
		switch list[0] {
		case '+':
			p.first = true
		case '*':
			p.anything = true
		case '-':
			p.words = true
		}
		list = list[1:]
	}
	for p.list = list; p.at < len(args); p.at++ {
		p.word(args[p.at])
	}
	return p.options
}

// word parses one argument. If the argument is an option and its value is the next
// argument, word also parses the next argument.
func (p *parser) word(a arg) {
	if name, _, _ := strings.Cut(a.text, "="); a.pattern && !p.ended && name != "" && strings.IndexByte("*?[-", name[0]) >= 0 && strings.ContainsAny(name, "*?[") {
		p.wild = a.text
	}
	switch {
	case p.ended:
		p.rest = append(p.rest, a)
	case !a.known && !a.counts || len(a.text) < 2 || a.text[0] != '-':
		p.rest = append(p.rest, a)
		p.ended = p.first
	case a.text == "--":
		p.ended = true
	case p.words || strings.HasPrefix(a.text, "--"):
		p.long(a)
	default:
		p.letters(a)
	}
}

// next returns the argument after an option as its value.
func (p *parser) next() arg {
	if p.at+1 < len(p.args) {
		p.at++
		if a := p.args[p.at]; a.counts && !a.firm && p.strange == "" {
			p.strange = a.text // the shell drops an empty word, and then the option takes the word after it
		}
		return p.args[p.at]
	}
	return arg{text: "(nothing)"}
}

// long parses --name, --name=value or --name value. If p.words is set, it also parses
// -name.
func (p *parser) long(a arg) {
	name, given, joined := strings.Cut(strings.TrimPrefix(a.text[1:], "-"), "=")
	value := arg{text: given, known: joined && a.known, pattern: joined && a.pattern, counts: joined && a.counts}
	names, kinds, exact := p.find(name)
	if len(names) != 1 || !exact && p.anything {
		p.odd(a.text)
		p.put(name, "", value)
		p.given[len(p.given)-1].short = name != "" && !p.words
		for i := range names { // the name may abbreviate any of these: record all, and keep the next word as an argument, too
			if !joined && strings.HasPrefix(kinds[i], "=") && !strings.HasPrefix(kinds[i], "=?") && p.at+1 < len(p.args) {
				value = p.args[p.at+1]
			}
			p.put(names[i], kinds[i], value)
		}
		return
	}
	kind := kinds[0]
	if !joined && strings.HasPrefix(kind, "=") && !strings.HasPrefix(kind, "=?") {
		value = p.next()
	}
	p.put(names[0], kind, value)
	p.ended = p.ended || strings.HasSuffix(kind, ".")
}

// letters parses -abc, -ovalue and -o value.
func (p *parser) letters(a arg) {
	for i := 1; i < len(a.text); i++ {
		letter := a.text[i : i+1]
		kind, ok := kindOf(p.list, letter)
		if !ok {
			p.odd("-" + letter)
			if joined := a.text[i+1:]; startsOutward(joined) { // such as -x/etc/passwd
				p.put(letter, "", arg{text: joined, known: a.known, pattern: a.pattern})
				return
			}
		}
		if !strings.HasPrefix(kind, "=") {
			p.put(letter, kind, arg{})
			p.ended = p.ended || strings.HasSuffix(kind, ".")
			continue
		}
		value := arg{}
		switch joined := a.text[i+1:]; {
		case joined != "":
			value = arg{text: joined, known: a.known, pattern: a.pattern, counts: a.counts}
			if a.counts && !a.firm && !strings.HasPrefix(kind, "=?") && p.strange == "" {
				p.strange = a.text // if the value is empty, the option takes the next word
			}
		case !strings.HasPrefix(kind, "=?"):
			value = p.next()
		}
		p.put(letter, kind, value)
		p.ended = p.ended || strings.HasSuffix(kind, ".")
		return
	}
}

func (p *parser) odd(text string) {
	if p.strange == "" && !p.anything {
		p.strange = text
	}
}

// find returns the long options that a name may mean. The name may be an abbreviation.
func (p *parser) find(name string) (names, kinds []string, exact bool) {
	if kind, ok := kindOf(p.list, name); ok && (len(name) > 1 || p.words) {
		return []string{name}, []string{kind}, true
	}
	if name == "" || p.words {
		return nil, nil, false
	}
	for list := p.list; ; {
		full, kind, more, ok := cutOption(list)
		if !ok {
			return names, kinds, false
		}
		if len(full) > 1 && strings.HasPrefix(full, name) {
			names, kinds = append(names, full), append(kinds, kind)
		}
		list = more
	}
}

// kindOf returns the text after the name of an option in the list.
func kindOf(list, name string) (kind string, ok bool) {
	for {
		full, kind, more, ok := cutOption(list)
		if !ok || full == name {
			return kind, ok
		}
		list = more
	}
}

// cutOption splits the first option off a list.
func cutOption(list string) (name, kind, more string, ok bool) {
	for list != "" && list[0] <= ' ' {
		list = list[1:]
	}
	if list == "" {
		return "", "", "", false
	}
	end := 1
	for end < len(list) && list[end] > ' ' {
		end++
	}
	cut := 1
	for cut < end && list[cut] != '=' && list[cut] != '!' && list[cut] != '%' {
		cut++
	}
	return list[:cut], list[cut:end], list[end:], true
}
