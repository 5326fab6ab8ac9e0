package permit

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/belay-run/belay/hook"
)

// rules are made ready for being looked up: their number should not matter to a call
// that few of them are about.
type rules struct {
	byTool map[string][]*rule // by exact name
	byGlob []*rule            // of tools by pattern

	mu    sync.Mutex
	ready map[string]*ruleIndex // by tool; bounded
}

func newRules(given []Rule, tools *profiles) (*rules, error) {
	if len(given) == 0 {
		return nil, nil
	}
	r := &rules{byTool: map[string][]*rule{}, ready: map[string]*ruleIndex{}}
	var problems []error
	for i, one := range given {
		c, err := compile(one, tools)
		if err == nil && one.Decision == RuleAllow && !one.Granted && (one.Origin == hook.OriginProject || one.Origin == hook.OriginSpace) {
			err = errors.New("a project's rules may ask and deny; to allow, it needs the operator's grant")
		}
		if err == nil && !slices.Contains([]RuleDecision{RuleAllow, RuleAsk, RuleDeny}, one.Decision) {
			err = fmt.Errorf("%q is none of allow, ask, deny", one.Decision)
		}
		if err != nil {
			where := ""
			if one.Where != "" {
				where = one.Where + ": "
			}
			problems = append(problems, fmt.Errorf("permit: %srule %q: %w", where, one.String(), err))
			continue
		}
		c.order = i
		if strings.ContainsAny(c.Tool, `*?[\`) {
			r.byGlob = append(r.byGlob, c)
		} else {
			r.byTool[c.Tool] = append(r.byTool[c.Tool], c)
		}
	}
	return r, errors.Join(problems...)
}

// ruleIndex has the rules of one tool by what they begin with.
type ruleIndex struct {
	calls, fields []*rule
	commands      map[string][]*rule // by the first word
	wildCommands  []*rule
	paths         pathIndex
	urls          []*rule
}

// pathIndex has patterns of paths by a part that does not vary.
type pathIndex struct {
	first map[string][]*rule // by the first part
	base  map[string][]*rule // **/NAME by NAME
	ext   map[string][]*rule // **/*.EXT by .EXT
	wild  []*rule
}

// of is the index of a tool's rules.
func (r *rules) of(tool string) *ruleIndex {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, ok := r.ready[tool]; ok {
		return x
	}
	x := &ruleIndex{commands: map[string][]*rule{}, paths: pathIndex{map[string][]*rule{}, map[string][]*rule{}, map[string][]*rule{}, nil}}
	all := slices.Clone(r.byTool[tool])
	for _, one := range r.byGlob {
		if ok, err := path.Match(one.Tool, tool); ok && err == nil {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *rule) int { return a.order - b.order })
	for _, one := range all {
		x.add(one)
	}
	if len(r.ready) < mostRemembered {
		r.ready[tool] = x
	}
	return x
}

func (x *ruleIndex) add(r *rule) {
	switch r.about {
	case aboutCall:
		x.calls = append(x.calls, r)
	case aboutFields:
		x.fields = append(x.fields, r)
	case aboutURL:
		x.urls = append(x.urls, r)
	case aboutPath:
		x.paths.add(r)
	case aboutCommand:
		if first := r.words[0]; strings.ContainsAny(first, `*?[\`) {
			x.wildCommands = append(x.wildCommands, r)
		} else {
			x.commands[base(first)] = append(x.commands[base(first)], r)
		}
	}
}

const meta = `*?[{\`

func (x *pathIndex) add(r *rule) {
	first, rest, more := strings.Cut(r.path, "/")
	switch {
	case foldsCase:
		x.wild = append(x.wild, r)
	case !strings.ContainsAny(first, meta):
		x.first[first] = append(x.first[first], r)
	case first == "**" && more && rest != "" && !strings.ContainsAny(rest, meta+"/"):
		x.base[rest] = append(x.base[rest], r)
	case first == "**" && strings.HasPrefix(rest, "*.") && !strings.ContainsAny(rest[2:], meta+"/."):
		x.ext[rest[1:]] = append(x.ext[rest[1:]], r)
	default:
		x.wild = append(x.wild, r)
	}
}

// foldsCase says that file names are the same in upper and lower case.
const foldsCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

func (x *pathIndex) each(name string, do func(*rule)) {
	first, _, _ := strings.Cut(name, "/")
	base := path.Base(name)
	for _, list := range [...][]*rule{x.first[first], x.base[base], x.ext[path.Ext(base)], x.wild} {
		for _, r := range list {
			do(r)
		}
	}
}

// coverage says which findings a rule allows.
type coverage struct {
	all bool
	set []bool
}

func (c *coverage) covers(i int) bool { return c.all || i < len(c.set) && c.set[i] }

func (c *coverage) add(i, n int) {
	if c.set == nil {
		c.set = make([]bool, n)
	}
	c.set[i] = true
}

// judge asks the rules about a call. Those that ask or deny speak at once; what the
// others allow is returned.
func (r *rules) judge(e *Explanation, fields []member) coverage {
	var allowed coverage
	x := r.of(e.Tool)
	for _, one := range x.calls {
		e.heed(one, e.Tool, func() { allowed.all = true })
	}
	for _, one := range x.fields {
		if one.matchesFields(fields) {
			e.heed(one, e.Tool, func() { allowed.all = true })
		}
	}
	n := len(e.Findings)
	for i := range n {
		f := &e.Findings[i]
		heed := func(one *rule) { e.heed(one, f.Subject, func() { allowed.add(i, n) }) }
		switch f.Kind {
		case KindCommand:
			x.aboutCommand(f, heed)
		case KindRead, KindWrite:
			x.paths.each(f.Subject, func(one *rule) {
				if one.matchesPath(f.Subject) {
					heed(one)
				}
			})
		case KindURL:
			for _, one := range x.urls {
				if one.url.matches(f.Subject, one.strict()) {
					heed(one)
				}
			}
		case KindTool, KindUnknown: // rules about the call as a whole have spoken
		}
	}
	for i := range n { // what a command may do, it may do to what it is given
		if owner := e.Findings[i].owner; owner > 0 && owner <= n && owner-1 != i && allowed.covers(owner-1) && e.Findings[i].Kind != KindCommand {
			allowed.add(i, n)
		}
	}
	if n > 1 && e.Findings[0].Kind == KindTool && !allowed.all { // what it does is all that it is
		rest := true
		for i := 1; i < n; i++ {
			rest = rest && allowed.covers(i)
		}
		if rest {
			allowed.add(0, n)
		}
	}
	return allowed
}

// heed notes what a rule says that matches.
func (e *Explanation) heed(r *rule, subject string, allow func()) {
	o := Opinion{By: "rule " + r.String(), Decision: r.decision(), About: subject, Reason: r.Reason}
	if r.Where != "" {
		o.By += " (" + r.Where + ")"
	}
	if r.Decision == RuleAllow {
		o.Allows = true
		allow()
	} else if o.Reason == "" {
		o.Reason = fmt.Sprintf("%s: the rule says %s", shown(subject), r.Decision)
	}
	e.say(o)
}

// aboutCommand finds the rules that match a command.
func (x *ruleIndex) aboutCommand(f *Finding, heed func(*rule)) {
	name, _, _ := strings.Cut(f.Subject, " ")
	if f.words != nil {
		name = f.words[0]
	}
	for _, list := range [...][]*rule{x.commands[base(name)], x.wildCommands} {
		for _, r := range list {
			if r.matchesCommand(f) {
				heed(r)
			}
		}
	}
}

// matchesCommand compares the words of a command. A rule that allows must match all
// words, each known, of a program of the system. One that asks or denies matches what
// begins like it, whatever directory the program is in; where a word is not known it
// matches what it may be.
func (r *rule) matchesCommand(f *Finding) bool {
	if f.words == nil {
		if r.strict() {
			return false
		}
		first, _, _ := strings.Cut(f.Subject, " ")
		return matchWord(r.words[0], base(first))
	}
	name := f.words[0]
	switch {
	case matchWord(r.words[0], name) && (f.trust || !r.strict() || strings.Contains(r.words[0], "/")):
	case matchWord(r.words[0], base(name)) && (f.trust || !r.strict()):
	default:
		return false
	}
	return matchWords(r.words[1:], f.words[1:], !r.strict())
}

// matchWords compares words with patterns. A last * stands for any number of words;
// with prefix what is behind the patterns does not matter.
func matchWords(patterns, words []string, prefix bool) bool {
	for i, p := range patterns {
		if p == "*" && i == len(patterns)-1 {
			return true
		}
		if i >= len(words) || !matchWord(p, words[i]) {
			return false
		}
	}
	return prefix || len(words) == len(patterns)
}

// matchWord compares a word with a pattern in which * stands for any text, slashes
// too.
func matchWord(pattern, word string) bool {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return pattern == word
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(word, "/", "\x01"))
	return ok && err == nil
}

func (r *rule) matchesPath(name string) bool {
	glob := r.path
	if foldsCase && !r.strict() {
		glob, name = strings.ToLower(glob), strings.ToLower(name)
	}
	return doublestar.MatchUnvalidated(glob, name)
}

// matchesFields compares fields of the input. Nested ones go by dotted names.
func (r *rule) matchesFields(fields []member) bool {
	for name, glob := range r.fields {
		value, ok := fieldValue(fields, name)
		if !ok || !matchWord(glob, value) {
			return false
		}
	}
	return true
}

// fieldValue is a field as text: a string itself, other values as JSON.
func fieldValue(fields []member, name string) (string, bool) {
	first, rest, nested := strings.Cut(name, ".")
	for i := range fields {
		m := &fields[i]
		switch {
		case strings.EqualFold(m.name, name):
			if text, ok := m.text(); ok {
				return text, true
			}
			return string(m.value), true
		case nested && strings.EqualFold(m.name, first):
			inner, err := members(m.value)
			if err != nil {
				return "", false
			}
			return fieldValue(inner, rest)
		}
	}
	return "", false
}

// urlPattern matches addresses by scheme, host and path.
type urlPattern struct{ scheme, host, path string }

// parseURLPattern reads https://*.example.com/api/*, or a host alone.
func parseURLPattern(text string) (urlPattern, error) {
	var p urlPattern
	rest := text
	if scheme, after, ok := strings.Cut(text, "://"); ok {
		p.scheme, rest = strings.ToLower(scheme), after
	}
	host, after, hasPath := strings.Cut(rest, "/")
	p.host = strings.ToLower(host)
	if hasPath {
		p.path = "/" + after
	}
	if p.host == "" || strings.ContainsAny(p.host, " @#?[\\") && !strings.HasPrefix(p.host, "[") {
		return p, fmt.Errorf("%q is not a pattern of addresses: write https://*.example.com/*", text)
	}
	return p, nil
}

// matches compares an address. With strict it must be written plainly.
func (p *urlPattern) matches(raw string, strict bool) bool {
	r := judgeURL(raw)
	u, err := url.Parse(raw)
	if err != nil {
		return !strict && matchWord(p.host, r.host)
	}
	if strict && (u.User != nil || !strings.EqualFold(u.Hostname(), r.host) && r.host != "" || u.Opaque != "") {
		return false
	}
	switch {
	case p.scheme != "" && !strings.EqualFold(p.scheme, u.Scheme) && (strict || u.Scheme != ""):
		return false
	case !matchWord(p.host, r.host) && !matchWord(p.host, strings.ToLower(u.Host)):
		return false
	default:
		return p.path == "" || matchWord(p.path, u.EscapedPath()) || p.path == "/*" && u.EscapedPath() == ""
	}
}
