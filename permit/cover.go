package permit

import (
	"context"
	"encoding/json"
	"net/url"
	"path"
	"strings"

	"github.com/belay-run/belay"
)

var _ belay.PatternAuthorizer = (*Floor)(nil)

// CheckPattern says why a pattern of calls cannot be read. A pattern is a rule
// without its decision: shell(git push *).
func (f *Floor) CheckPattern(pattern string) error {
	_, err := f.pattern(pattern)
	return err
}

// pattern reads a pattern as a rule that allows.
func (f *Floor) pattern(text string) (*rule, error) {
	r, err := ParseRule("allow " + text)
	if err != nil {
		return nil, err
	}
	return compile(r, f.tools)
}

// Covers reports whether a pattern covers all of a call that the floor would ask
// about. Of a call that the floor lets run, and others ask about, it must cover all.
func (f *Floor) Covers(ctx context.Context, pattern string, call belay.ToolCall) (bool, error) {
	r, err := f.pattern(pattern)
	if err != nil {
		return false, err
	}
	return f.covers(ctx, r, call.Tool(), call.Input()), nil
}

func (f *Floor) covers(ctx context.Context, r *rule, tool string, input json.RawMessage) bool {
	if ok, err := path.Match(r.Tool, tool); !ok || err != nil {
		return false
	}
	fields, err := members(input)
	if err != nil {
		return false
	}
	plain := *f // without guards, which have had their say
	plain.guards = nil
	e := plain.Explain(ctx, tool, input)
	alone := &rules{byTool: map[string][]*rule{tool: {r}}, ready: map[string]*ruleIndex{}}
	allowed, _ := alone.judge(f, &Explanation{Tool: tool, Findings: e.Findings}, fields)
	if len(e.Findings) == 0 {
		return allowed.all
	}
	whole := e.Decision == belay.ToolPass // whoever asks, it is not known what about
	matched := false
	for i := range e.Findings {
		found := &e.Findings[i]
		switch {
		case found.Zone >= ZoneNever:
			return false
		case allowed.covers(i), found.attached() && allowed.covers(found.owner-1):
			matched = true
		case whole, e.asked.covers(i), found.Zone > f.mode.Auto, f.heldBack(found):
			return false
		}
	}
	return matched
}

// heldBack reports whether a protection that holds is about a finding.
func (f *Floor) heldBack(found *Finding) bool {
	return found.Protection != "" && !f.relaxed[found.Protection]
}

// attached reports whether a finding only says more about the command it belongs to.
func (found *Finding) attached() bool {
	return found.owner > 0 && (found.Kind != KindCommand || found.words == nil && found.Protection != "")
}

// verbs are commands whose first word says what they do; of those with true the next
// says it too.
var verbs = map[string]bool{
	"git": false, "go": false, "npm": true, "pnpm": true, "yarn": true, "cargo": false, "docker": false, "kubectl": false, "gh": true, "make": false,
	"pip": false, "uv": false, "apt": false, "apt-get": false, "brew": false, "systemctl": false, "terraform": false, "helm": false, "podman": false,
}

// Suggest is a pattern that covers a call and others like it, for whoever is asked
// about it, or nothing. It is narrow where the call is dangerous: what is destructive,
// or reaches beyond the project, is suggested as it is, and nothing is for programs that
// run whatever they are given.
func (f *Floor) Suggest(ctx context.Context, tool string, input json.RawMessage) string {
	e := f.Explain(ctx, tool, input)
	for _, pattern := range f.candidates(e) {
		if r, err := f.pattern(pattern); err == nil && f.covers(ctx, r, tool, input) {
			return pattern
		}
	}
	return ""
}

// candidates are patterns to be tried, the best first: that of a rule which asks, then
// those of what was found.
func (f *Floor) candidates(e *Explanation) []string {
	var patterns []string
	for _, o := range e.Opinions {
		if o.Decision == belay.ToolAsk && o.pattern != "" {
			patterns = append(patterns, e.Tool+"("+o.pattern+")", e.Tool+"("+o.pattern+" *)")
		}
	}
	command, plain := f.tools.of(e.Tool).Command != "", true
	for i := range e.Findings {
		found := &e.Findings[i]
		pattern := ""
		switch {
		case found.Kind == KindCommand && command:
			pattern = commandPattern(e, i)
		case command, found.Kind == KindTool:
			continue
		case found.Kind == KindRead || found.Kind == KindWrite:
			pattern = filePattern(found)
		case found.Kind == KindURL:
			pattern = urlPatternOf(found.Subject)
		}
		if plain = false; pattern != "" {
			patterns = append(patterns, e.Tool+"("+pattern+")")
		}
	}
	if plain && !command { // there is nothing to it but its name
		patterns = append(patterns, e.Tool)
	}
	return patterns
}

// commandPattern is a pattern for a command, or nothing.
func commandPattern(e *Explanation, at int) string {
	found := &e.Findings[at]
	if found.words == nil || !found.trust || runsWhatever[base(found.words[0])] {
		return ""
	}
	grave := false
	for i := range e.Findings {
		if f := &e.Findings[i]; i == at || f.owner == at+1 {
			grave = grave || f.Protection != "" || f.Zone >= ZoneMachine
		}
	}
	words, more := found.words, ""
	if !grave {
		words, more = words[:1], " *"
		next, ok := verbs[base(words[0])]
		for n := 1; ok && n < len(found.words) && !strings.HasPrefix(found.words[n], "-"); n++ {
			words = found.words[:n+1]
			ok = next && n == 1
		}
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, "() \t\n") {
			return ""
		}
		quoted[i] = quotedWord.Replace(w)
	}
	return strings.Join(quoted, " ") + more
}

// runsWhatever are programs that run what they are given. No pattern over their words
// says what that is.
var runsWhatever = wordSet("sh bash dash zsh ksh mksh ash rbash yash posh fish csh tcsh nu xonsh elvish pwsh powershell rc es eval . source exec command builtin trap " +
	"python python2 python3 pypy pypy3 ipython node nodejs deno bun tsx ts-node ruby perl perl5 php php8 php7 lua luajit Rscript R julia elixir iex erl escript tclsh guile racket " +
	"sbcl ocaml ghci swipl awk gawk mawk nawk osascript java jshell groovy scala kotlin expect gdb lldb vi vim nvim ed emacs " +
	"env sudo doas pkexec su runuser xargs parallel nohup setsid nice ionice timeout time watch entr strace ltrace busybox toybox chroot unshare nsenter systemd-run ssh npx bunx uvx pipx tmux screen find fd nix nix-shell")

// wordSet are words as a set.
func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// filePattern is a pattern for the files of a directory; a file that is held, or in no
// directory, stands for itself.
func filePattern(found *Finding) string {
	dir := path.Dir(found.Subject)
	if found.Protection != "" || found.Zone >= ZoneMachine || dir == "." || dir == "/" {
		return quotedGlob(found.Subject)
	}
	return quotedGlob(dir) + "/*"
}

// urlPatternOf is a pattern for the addresses of a host.
func urlPatternOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/*"
}

// quotedWord writes a word as a pattern that matches it alone.
var quotedWord = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// quotedGlob is a path as a pattern that matches it alone.
func quotedGlob(name string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`, `\`, `\\`).Replace(name)
}
