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

// CheckPattern returns an error if a pattern of calls is invalid. A pattern is a rule
// without its decision, such as shell(git push *).
func (f *Floor) CheckPattern(pattern string) error {
	_, err := f.pattern(pattern)
	return err
}

// pattern parses a pattern as an allow rule.
func (f *Floor) pattern(text string) (*rule, error) {
	r, err := ParseRule("allow " + text)
	if err != nil {
		return nil, err
	}
	return compile(r, f.tools)
}

// Covers reports whether a pattern covers everything in a call that the floor would ask
// about. If the floor would let the call run, the question comes from somebody else, such
// as a hook. Then the pattern must cover the whole call.
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
	plain := *f // the guards were checked before
	plain.guards = nil
	e := plain.Explain(ctx, tool, input)
	alone := &rules{byTool: map[string][]*rule{tool: {r}}, ready: map[string]*ruleIndex{}}
	allowed, _ := alone.judge(f, &Explanation{Tool: tool, Findings: e.Findings}, fields)
	if len(e.Findings) == 0 {
		return allowed.all
	}
	whole := e.Decision == belay.ToolPass // nobody knows which part of the call the question is about
	matched := false
	for i := range e.Findings {
		found := &e.Findings[i]
		switch {
		case found.Zone >= ZoneNever:
			return false
		case found.isApart(e.Findings), found.isFed(e.Findings): // in another directory or with other input, the same words have other effects
			if whole || e.asked.covers(i) || found.Zone > f.mode.Auto || f.heldBack(found) {
				return false
			}
		case allowed.covers(i), found.attached() && allowed.covers(found.owner-1):
			matched = true
		case whole, e.asked.covers(i), found.Zone > f.mode.Auto, f.heldBack(found):
			return false
		}
	}
	return matched
}

// isApart reports whether a finding is a command outside the project directory, or with
// variables that the line sets. It also returns true for a finding that belongs to such a
// command.
func (found *Finding) isApart(all []Finding) bool {
	return found.apart || found.owner > 0 && found.owner <= len(all) && all[found.owner-1].apart
}

// isFed reports whether a finding is a command with input from a pipe or a redirection,
// or belongs to such a command. The words of the command do not show that input.
func (found *Finding) isFed(all []Finding) bool {
	return found.fed || found.owner > 0 && found.owner <= len(all) && all[found.owner-1].fed
}

// heldBack reports whether a protection that is not relaxed applies to a finding.
func (f *Floor) heldBack(found *Finding) bool {
	return found.Protection != "" && !f.relaxed[found.Protection]
}

// attached reports whether a finding only adds something to the finding of its command.
func (found *Finding) attached() bool {
	return found.owner > 0 && (found.Kind != KindCommand || found.words == nil && found.Protection != "")
}

// Suggest returns a pattern for a person who is asked about a call and wants to allow
// more than this call. For a command, the pattern has exactly the words of the command.
// It also covers a longer line with this command if nothing else in the line needs
// approval: shell(git push) covers "git status && git push". For a file, the pattern has
// the path. For an address it covers all URLs of the host. If the floor knows only the
// name of the tool, the pattern is this name. Apart from such a name, no pattern covers
// another host, remote, registry, directory or file.
//
// Suggest returns an empty text if no single pattern of this kind covers the call. Examples
// are programs that run their arguments or input, commands outside the project directory or
// with variables that the line sets, and commands with input from a pipe or a redirection.
func (f *Floor) Suggest(ctx context.Context, tool string, input json.RawMessage) string {
	e := f.Explain(ctx, tool, input)
	for _, pattern := range f.candidates(e) {
		if r, err := f.pattern(pattern); err == nil && f.covers(ctx, r, tool, input) {
			return pattern
		}
	}
	return ""
}

// candidates returns one possible pattern for each finding.
func (f *Floor) candidates(e *Explanation) []string {
	var patterns []string
	command, plain := f.tools.of(e.Tool).Command != "", true
	for i := range e.Findings {
		found := &e.Findings[i]
		pattern := ""
		switch {
		case found.Kind == KindCommand && command:
			pattern = commandPattern(found)
		case command, found.Kind == KindTool:
			continue
		case found.Kind == KindRead || found.Kind == KindWrite:
			pattern = quotedGlob(found.Subject)
		case found.Kind == KindURL:
			pattern = urlPatternOf(found.Subject)
		}
		if plain = false; pattern != "" {
			patterns = append(patterns, e.Tool+"("+pattern+")")
		}
	}
	if plain && !command { // the floor knows only the name of the tool
		patterns = append(patterns, e.Tool)
	}
	return patterns
}

// commandPattern returns a pattern for a command, or an empty text if there is none.
func commandPattern(found *Finding) string {
	if found.words == nil || !found.trust || found.fed || runsWhatever[base(found.words[0])] {
		return ""
	}
	quoted := make([]string, len(found.words))
	for i, w := range found.words {
		if w == "" || strings.ContainsAny(w, "() \t\n") {
			return ""
		}
		quoted[i] = quotedWord.Replace(w)
	}
	return strings.Join(quoted, " ")
}

// runsWhatever are programs that run their arguments or their input. The words of such a
// command do not show what it does.
var runsWhatever = wordSet("sh bash dash zsh ksh mksh ash rbash yash posh fish csh tcsh nu xonsh elvish pwsh powershell rc es eval . source exec command builtin trap " +
	"python python2 python3 pypy pypy3 ipython node nodejs deno bun tsx ts-node ruby perl perl5 php php8 php7 lua luajit Rscript R julia elixir iex erl escript tclsh guile racket " +
	"sbcl ocaml ghci swipl awk gawk mawk nawk osascript java jshell groovy scala kotlin expect gdb lldb vi vim nvim ed emacs " +
	"env sudo doas pkexec su runuser xargs parallel nohup setsid nice ionice timeout time watch entr strace ltrace busybox toybox chroot unshare nsenter systemd-run ssh npx bunx uvx pipx tmux screen find fd nix nix-shell")

// wordSet returns the words of a list as a set.
func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// urlPatternOf returns a pattern for all URLs of a host.
func urlPatternOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/*"
}

// quotedWord quotes a word as a pattern that matches only this word.
var quotedWord = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// quotedGlob quotes a path as a pattern that matches only this path.
func quotedGlob(name string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`, `\`, `\\`).Replace(name)
}
