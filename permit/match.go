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

// rules has the rules of a floor by tool, so that rules of other tools cost nothing.
type rules struct {
	byTool map[string][]*rule // by exact name
	byGlob []*rule            // rules whose tool is a pattern

	aliases func(tool string) []string // or nil

	mu    sync.Mutex
	ready map[string]*ruleIndex // by tool; at most mostRemembered
}

func newRules(given []Rule, tools *profiles, aliases func(string) []string) (*rules, error) {
	if len(given) == 0 {
		return nil, nil
	}
	r := &rules{byTool: map[string][]*rule{}, ready: map[string]*ruleIndex{}, aliases: aliases}
	var problems []error
	for i, one := range given {
		var c *rule
		var err error
		if aliases == nil || !strings.HasPrefix(one.Tool, "mcp__") { // the name of a tool in another agent is no misspelling of ours
			err = tools.misspelt(one.Tool)
		}
		if err == nil {
			c, err = compile(one, tools)
		}
		if err == nil && one.Decision == RuleAllow && !one.Granted && (one.Origin == hook.OriginProject || one.Origin == hook.OriginSpace) {
			err = errors.New("a rule of a project or a space may only ask or deny, unless the operator has granted it")
		}
		if err == nil && !slices.Contains([]RuleDecision{RuleAllow, RuleAsk, RuleDeny}, one.Decision) {
			err = fmt.Errorf("unknown decision %q: write allow, ask or deny", one.Decision)
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

// ruleIndex has the rules that apply to one tool, by kind of pattern.
type ruleIndex struct {
	calls, fields []*rule
	commands      map[string][]*rule // by the first word
	wildCommands  []*rule
	paths         pathIndex
	urls          []*rule
}

// pathIndex has the path rules of one tool, by a part of the pattern without wildcards.
type pathIndex struct {
	first map[string][]*rule // by the first directory
	base  map[string][]*rule // **/NAME by NAME
	ext   map[string][]*rule // **/*.EXT by .EXT
	wild  []*rule
	wary  []*rule // all ask and deny rules
	loose []*rule // the rules of wary that may match in any directory
}

// byAlias returns the ask and deny rules that match another name of a tool and are not in
// have.
func (r *rules) byAlias(tool string, have []*rule) []*rule {
	if r.aliases == nil {
		return nil
	}
	var found []*rule
	add := func(one *rule) {
		if one.Decision != RuleAllow && !slices.Contains(have, one) && !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	for _, name := range r.aliases(tool) {
		for _, one := range r.byTool[name] {
			add(one)
		}
		for _, one := range r.byGlob {
			if ok, err := path.Match(one.Tool, name); ok && err == nil {
				add(one)
			}
		}
	}
	return found
}

// of returns the index of a tool's rules.
func (r *rules) of(tool string) *ruleIndex {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, ok := r.ready[tool]; ok {
		return x
	}
	x := &ruleIndex{commands: map[string][]*rule{}, paths: pathIndex{first: map[string][]*rule{}, base: map[string][]*rule{}, ext: map[string][]*rule{}}}
	all := slices.Clone(r.byTool[tool])
	for _, one := range r.byGlob {
		if ok, err := path.Match(one.Tool, tool); ok && err == nil {
			all = append(all, one)
		}
	}
	all = append(all, r.byAlias(tool, all)...)
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
	if !r.strict() {
		x.wary = append(x.wary, r)
		if foldsCase || strings.ContainsAny(first, meta) {
			x.loose = append(x.loose, r)
		}
	}
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

// foldsCase is set if file names ignore case.
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

// coverage is a set of findings.
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

// verdicts has the findings that rules allow, and those that rules ask about.
type verdicts struct{ allowed, asked coverage }

// note records that a rule applies to finding i of n. A negative i means the whole call.
func (v *verdicts) note(one *rule, i, n int) {
	c := &v.allowed
	switch one.Decision {
	case RuleDeny:
		return
	case RuleAsk:
		c = &v.asked
	case RuleAllow:
	}
	if i < 0 {
		c.all = true
		return
	}
	c.add(i, n)
}

// judge applies the rules to a call, and adds the opinion of each rule that matches. It
// returns the findings that rules allow, and those that rules ask about.
func (r *rules) judge(floor *Floor, e *Explanation, fields []member) (allowed, asked coverage) {
	var v verdicts
	x := r.of(e.Tool)
	n := len(e.Findings)
	whole := func(one *rule) {
		v.note(one, -1, n)
		e.addOpinion(one, e.Tool, "")
	}
	for _, one := range x.calls {
		whole(one)
	}
	for _, one := range x.fields {
		if one.matchesFields(fields) {
			whole(one)
		}
	}
	for i := range n {
		f := &e.Findings[i]
		x.about(floor, f, func(one *rule, what string) {
			v.note(one, i, n)
			e.addOpinion(one, f.Subject, what)
		})
	}
	v.allowed.spread(e.Findings)
	return v.allowed, v.asked
}

// about calls addOpinion for each rule that matches a finding, or a file below the
// directory of the finding. If the rule matches such a file, what is the path of the
// file. Otherwise what is empty.
func (x *ruleIndex) about(floor *Floor, f *Finding, addOpinion func(one *rule, what string)) {
	switch f.Kind {
	case KindCommand:
		x.aboutCommand(f, func(one *rule) { addOpinion(one, "") })
	case KindRead, KindWrite:
		x.paths.each(f.Subject, func(one *rule) {
			if one.matchesPath(f.Subject) {
				addOpinion(one, "")
			}
		})
		if f.tree != "" && len(x.paths.wary) > 0 {
			floor.below(f.tree, x.paths.under(floor, f.tree), func(one *rule, what string) {
				if !one.matchesPath(f.Subject) { // otherwise the rule has already been applied above
					addOpinion(one, what)
				}
			})
		}
	case KindURL:
		for _, one := range x.urls {
			if one.url.matches(f.Subject, one.strict()) {
				addOpinion(one, "")
			}
		}
	case KindTool, KindUnknown: // judge has already applied the rules about the whole call
	}
}

// spread extends the coverage. If a command is covered, the paths and addresses that it
// uses are covered, too. If everything that a tool does is covered, the tool itself is
// covered.
func (c *coverage) spread(findings []Finding) {
	n := len(findings)
	for i := range n {
		if owner := findings[i].owner; owner > 0 && owner <= n && owner-1 != i && c.covers(owner-1) && findings[i].Kind != KindCommand {
			c.add(i, n)
		}
	}
	if n <= 1 || findings[0].Kind != KindTool || findings[0].opaque || c.all {
		return
	}
	for i := 1; i < n; i++ {
		if !c.covers(i) {
			return
		}
	}
	c.add(0, n)
}

// addOpinion records the opinion of a rule about a subject. If the rule matches a file
// below the subject, below is the path of that file.
func (e *Explanation) addOpinion(r *rule, subject, below string) {
	o := Opinion{By: "rule " + r.String(), Decision: r.decision(), About: subject, Reason: r.Reason, Where: r.Where}
	if o.Allows = r.Decision == RuleAllow; !o.Allows && o.Reason == "" {
		o.Reason = fmt.Sprintf("%s: the rule says %s", shown(subject), r.Decision)
		if below != "" {
			o.Reason = fmt.Sprintf("%s contains %s, and the rule for that path says %s; name only the paths that you need", shown(subject), shown(below), r.Decision)
		}
		if r.Where != "" {
			o.Reason += " (" + r.Where + ")"
		}
	}
	e.say(o)
}

func (x *ruleIndex) aboutCommand(f *Finding, addOpinion func(*rule)) {
	name, _, _ := strings.Cut(f.Subject, " ")
	if f.words != nil {
		name = f.words[0]
	}
	for _, list := range [...][]*rule{x.commands[base(name)], x.wildCommands} {
		for _, r := range list {
			if r.matchesCommand(f) {
				addOpinion(r)
			}
		}
	}
}

// matchesCommand compares a rule with the words of a command. An allow rule must match
// all words, and all words must be known. The command must be a program of the system,
// unless the rule names its path. An ask or deny rule matches commands that begin with
// its words, in any directory. If a word of the command is unknown, ask and deny rules
// compare only the name of the command.
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
	return matchWords(r.words[1:], f.words[1:], !r.strict()) || !r.strict() && matchBehindOptions(r.words[1:], f.words[1:])
}

// matchBehindOptions compares the words after leading options, such as push in git -C .
// push. A word after an option may be the value of that option. The result may match too
// much, so only ask and deny rules use it.
func matchBehindOptions(patterns, words []string) bool {
	if len(patterns) == 0 || strings.HasPrefix(patterns[0], "-") {
		return false
	}
	option := false // the previous word is an option that may have a value
	for i, word := range words {
		if i > 0 && matchWords(patterns, words[i:], true) {
			return true
		}
		switch {
		case strings.HasPrefix(word, "-"):
			option = !strings.Contains(word, "=")
		case option:
			option = false
		default:
			return false
		}
	}
	return false
}

// matchWords compares words with patterns. A * at the end matches any number of words. If
// prefix is set, more words may follow.
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

// matchWord compares a word with a pattern. * matches any text, including slashes.
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

// matchesFields compares fields of the input. Nested fields have dotted names.
func (r *rule) matchesFields(fields []member) bool {
	for name, glob := range r.fields {
		value, ok := fieldValue(fields, name)
		if !ok || !matchWord(glob, value) {
			return false
		}
	}
	return true
}

// fieldValue returns a field as text: a string without quotes, or other values as JSON.
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

// urlPattern matches URLs by scheme, host and path.
type urlPattern struct{ scheme, host, path string }

// parseURLPattern parses https://*.example.com/api/*, or a host alone.
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
		return p, fmt.Errorf("%q is not a valid address pattern: write https://*.example.com/*", text)
	}
	return p, nil
}

// matches reports whether a URL matches. If strict is set, a URL in an unusual spelling
// does not match.
func (p *urlPattern) matches(raw string, strict bool) bool {
	r := judgeURL(raw)
	u, err := url.Parse(raw)
	if err != nil {
		return !strict && matchWord(p.host, r.host)
	}
	if strict && (u.User != nil || !strings.EqualFold(u.Hostname(), r.host) && r.host != "" || u.Opaque != "") {
		return false
	}
	if port := u.Port(); strict && port != "" && !strings.Contains(p.host, ":") && (u.Scheme != "https" || port != "443") && (u.Scheme != "http" || port != "80") {
		return false // another port may be another service
	}
	switch {
	case p.scheme != "" && !strings.EqualFold(p.scheme, u.Scheme) && (strict || u.Scheme != ""):
		return false
	case !matchWord(p.host, r.host) && !matchWord(p.host, strings.ToLower(u.Host)):
		return false
	case p.path == "":
		return true
	}
	written, meant := u.EscapedPath(), plainPath(u)
	if strict && written != "" && written != meant {
		return false
	}
	return matchWord(p.path, written) || matchWord(p.path, meant) || p.path == "/*" && written == ""
}

// plainPath returns the path of a URL as a server may read it: decoded, without . and ..,
// and without double slashes.
func plainPath(u *url.URL) string {
	plain := path.Clean("/" + strings.ReplaceAll(u.Path, "\\", "/"))
	if strings.HasSuffix(u.Path, "/") && plain != "/" {
		plain += "/"
	}
	return plain
}
