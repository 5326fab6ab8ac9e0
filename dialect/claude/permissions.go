package claude

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/webtool"
)

// Permissions are the permissions of a settings file, in the form of package permit.
type Permissions struct {
	Rules  []permit.Rule
	Guards []permit.Guard
	// Notes say which rules have no effect, or another effect than in Claude Code.
	Notes []string
}

// PermissionOptions say how to translate permissions.
type PermissionOptions struct {
	// Project is the directory of the project, with links resolved. Home is the user's home
	// directory, or "".
	Project, Home string
	// Own means that the file belongs to the user. Only then its allow rules have an effect.
	Own bool
	// Shown is how messages name the file.
	Shown string
}

// Permissions translates the permissions of a settings file. Whatever a deny rule denies in
// Claude Code, the result denies, too. If there is no exact translation, the result denies
// more. An allow rule never allows more than in Claude Code.
func (s *Settings) Permissions(o *PermissionOptions) *Permissions {
	t := &translation{settings: s, opts: o, into: new(Permissions)}
	for _, rule := range s.Deny {
		t.rule(permit.RuleDeny, rule)
	}
	for _, rule := range s.Ask {
		t.rule(permit.RuleAsk, rule)
	}
	if !o.Own && len(s.Allow) > 0 {
		t.notef("its allow rules (%d) have no effect: a project may not allow calls: put them into permit.rules of your own belay.yaml", len(s.Allow))
	} else {
		for _, rule := range s.Allow {
			t.rule(permit.RuleAllow, rule)
		}
	}
	if s.DefaultMode != "" && s.DefaultMode != "default" {
		t.notef("defaultMode %s has no effect: use --mode, or mode in belay.yaml", s.DefaultMode)
	}
	if len(s.Directories) > 0 {
		t.notef("additionalDirectories has no effect: put these directories into permit.roots of your own belay.yaml")
	}
	return t.into
}

// Patterns translates a tool, perhaps with a limit, such as Bash(git log:*), to names and
// patterns of package permit, such as shell(git log *). They never match more than the limit.
// If there is no translation, the result is empty.
func Patterns(limit string, o *PermissionOptions) []string {
	with := *o
	with.Own = true
	p := (&Settings{Allow: []string{limit}}).Permissions(&with)
	var patterns []string
	for i := range p.Rules {
		patterns = append(patterns, strings.TrimPrefix(p.Rules[i].String(), string(permit.RuleAllow)+" "))
	}
	return patterns
}

// translation is the state while permissions are translated.
type translation struct {
	settings *Settings
	opts     *PermissionOptions
	into     *Permissions
	decision permit.RuleDecision
	text     string // the rule
}

func (t *translation) notef(format string, args ...any) {
	t.into.Notes = append(t.into.Notes, fmt.Sprintf(format, args...))
}

// rulef notes something about the current rule.
func (t *translation) rulef(format string, args ...any) {
	t.notef("%s %s: %s", t.decision, t.text, fmt.Sprintf(format, args...))
}

// add adds a rule of package permit.
func (t *translation) add(decision permit.RuleDecision, tool, pattern string) {
	r := permit.Rule{Decision: decision, Tool: tool, Pattern: pattern, Origin: hook.OriginProject, Where: t.settings.at(t.opts.Shown, t.text)}
	if t.opts.Own {
		r.Origin = hook.OriginOperator
	}
	if slices.ContainsFunc(t.into.Rules, func(o permit.Rule) bool {
		return o.Decision == r.Decision && o.Tool == r.Tool && o.Pattern == r.Pattern
	}) {
		return
	}
	t.into.Rules = append(t.into.Rules, r)
}

// guard adds a guard, unless the file has the same rule twice.
func (t *translation) guard(g permit.Guard) {
	if !slices.ContainsFunc(t.into.Guards, func(o permit.Guard) bool { return o.ID == g.ID }) {
		t.into.Guards = append(t.into.Guards, g)
	}
}

// rule translates a rule: TOOL or TOOL(SPECIFIER).
func (t *translation) rule(decision permit.RuleDecision, text string) {
	t.decision, t.text = decision, text
	tool, spec, limited := strings.Cut(strings.TrimSpace(text), "(")
	tool = t.spelled(strings.TrimSpace(tool))
	if limited {
		inner, closed := strings.CutSuffix(strings.TrimSpace(spec), ")")
		if spec = strings.TrimSpace(inner); !closed && !t.unlimited("it has no closing parenthesis", tool) {
			return
		} else if !closed {
			spec = ""
		}
	}
	if spec == "*" || spec == "**" || spec == ":*" {
		spec = ""
	}
	server := strings.HasPrefix(tool, "mcp__")
	if known, ok := dialect.OurName(tool); spec != "" && (server || !slices.Contains(limitable, tool) && (ok || tool == "*")) {
		if !t.unlimited("Belay knows no limit of this tool", cmp.Or(known, tool)) {
			return
		}
		spec = ""
	}
	if server {
		t.server(tool)
		return
	}
	switch tool {
	case "*":
		t.whole("*")
	case "Bash":
		t.command(spec)
	case "PowerShell":
		if decision == permit.RuleAllow {
			t.rulef("Belay has no such tool, so the rule has no effect")
			return
		}
		t.command(spec)
	case "Read":
		t.read(spec)
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		t.edit(spec)
	case "Grep", "Glob", "LS":
		name := map[string]string{"Grep": "grep", "Glob": "glob", "LS": "list"}[tool]
		t.path(spec, []string{name}, []string{name})
	case "WebFetch":
		t.fetch(spec)
	case "WebSearch":
		t.whole(webtool.SearchTool)
	case "Task", "Agent":
		t.named(spec, subagent.InvokeTool, subagent.DelegateTool)
	case "Skill", "SlashCommand":
		name, _, _ := strings.Cut(strings.TrimPrefix(spec, "/"), " ")
		t.named(strings.TrimSuffix(name, ":*"), skill.InvokeTool, skill.ReadTool)
	default:
		if name, ok := dialect.OurName(tool); ok {
			t.whole(name)
			return
		}
		t.rulef("Belay has no such tool, so the rule has no effect")
	}
}

// limitable are the tools whose rules can have a limit.
var limitable = []string{"Bash", "PowerShell", "Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "Grep", "Glob", "LS", "WebFetch", "Task", "Agent", "Skill", "SlashCommand"}

// spelled returns the name of a tool as Claude Code writes it. An allow rule has to be spelled
// as Claude Code does.
func (t *translation) spelled(tool string) string {
	if t.decision == permit.RuleAllow {
		return tool
	}
	for _, name := range limitable {
		if strings.EqualFold(name, tool) {
			return name
		}
	}
	return tool
}

// unlimited notes that the limit of a rule cannot be read. It reports whether the rule applies
// to all calls of the tool. An allow rule then has no effect.
func (t *translation) unlimited(why, tool string) bool {
	if t.decision == permit.RuleAllow {
		t.rulef("%s, so the rule has no effect", why)
		return false
	}
	t.rulef("%s, so Belay applies the rule to all calls of %s", why, tool)
	return true
}

// whole adds rules for all calls of tools.
func (t *translation) whole(tools ...string) {
	for _, tool := range tools {
		t.add(t.decision, tool, "")
	}
}

// server translates mcp__SERVER, mcp__SERVER__TOOL and patterns of them.
func (t *translation) server(name string) {
	name = strings.TrimPrefix(name, "mcp__")
	if t.decision == permit.RuleAllow && strings.Contains(name, "[") {
		t.rulef("Belay cannot translate it, so it has no effect")
		return
	}
	server, tool, named := strings.Cut(name, "__")
	if !named || tool == "" || tool == "*" {
		name = server + "__*"
	}
	name = strings.NewReplacer("[", "?", `\`, "?").Replace(name)
	t.add(t.decision, name, "")
	if t.decision != permit.RuleAllow { // rules with this spelling match by Options.Aliases, see dialect.ServerAliases
		t.add(t.decision, "mcp__"+name, "")
		if named && tool != "" && tool != "*" { // it can also be a server with __ in its name
			t.add(t.decision, "mcp__"+server+"__"+tool+"__*", "")
		}
	}
	if t.decision != permit.RuleAllow && strings.ContainsAny(name, ".:/ ") { // Belay spells such names in another way
		t.add(t.decision, strings.NewReplacer(".", "*", ":", "*", "/", "*", " ", "*").Replace(name), "")
	}
}

// named translates a rule about the calls of a tool whose field name has a value.
func (t *translation) named(name, tool, other string) {
	if name == "" {
		t.whole(tool, other)
		return
	}
	if t.decision == permit.RuleAllow {
		return // these tools need no approval
	}
	if strings.ContainsAny(name, `,=[\`) {
		t.rulef("Belay applies it to all calls of %s", tool)
		t.whole(tool, other)
		return
	}
	t.add(t.decision, tool, "name="+name)
	if _, short, ok := strings.Cut(name, ":"); ok { // an agent of a plugin
		t.add(t.decision, tool, "name="+short)
		t.add(t.decision, tool, "name="+agentName(name))
	}
	if other == subagent.DelegateTool { // its calls name several agents
		t.add(t.decision, other, "")
		t.rulef("Belay applies it to all calls of %s, because one call may name several agents", other)
		return
	}
	t.add(t.decision, other, "name="+name)
}

// fetch translates WebFetch(domain:HOST). A deny or ask rule also applies to other tools and
// to commands that use the address.
func (t *translation) fetch(spec string) {
	host, ok := strings.CutPrefix(spec, "domain:")
	host = strings.ToLower(strings.TrimSpace(host))
	odd := !ok || host == "" || strings.ContainsAny(host, " /@#?[\\")
	switch {
	case spec == "":
		t.whole(webtool.FetchTool)
	case odd && t.decision == permit.RuleAllow:
		t.rulef("Belay cannot translate it, so it has no effect")
	case odd:
		t.whole(webtool.FetchTool)
		t.rulef("Belay applies it to all addresses")
	case t.decision == permit.RuleAllow:
		t.add(t.decision, webtool.FetchTool, "url:https://"+host)
	default:
		t.add(t.decision, "*", "url:"+host)
	}
}

// edit translates a rule about changes of files. A rule of package permit does not
// distinguish between a command that reads a file and a command that changes it. So a
// command that uses a denied file asks.
func (t *translation) edit(spec string) {
	tools := []string{"write", "edit"}
	t.path(spec, tools, tools)
	if spec == "" || t.decision == permit.RuleAllow {
		return
	}
	for _, glob := range t.globs(spec) {
		t.add(permit.RuleAsk, "shell", "path:"+glob)
	}
}

// readers are commands that read files and to which Claude Code applies rules about Read.
// Without a path, a rule denies each of them.
var readers = []string{"cat", "head", "tail", "sed", "less", "more", "grep", "rg", "awk", "nl", "tac", "xxd", "od", "strings"}

// read translates a rule about reading. Claude Code applies it to all tools that read files,
// such as Grep and Glob, and to commands such as cat.
func (t *translation) read(spec string) {
	if spec != "" || t.decision == permit.RuleAllow {
		t.path(spec, []string{"read"}, []string{"*"})
		return
	}
	t.whole("read", "grep", "glob", "list")
	for _, command := range readers {
		t.add(t.decision, "shell", command)
	}
}

// path translates a rule about paths. bare are the tools if there is no path, and tools are
// those if there is one.
func (t *translation) path(spec string, bare, tools []string) {
	if spec == "" {
		t.whole(bare...)
		return
	}
	if t.decision == permit.RuleAllow {
		tools = bare
	}
	for _, glob := range t.globs(spec) {
		for _, tool := range tools {
			t.add(t.decision, tool, "path:"+glob)
		}
	}
}

// globs translates a path pattern of Claude Code, which has the syntax of .gitignore:
//
//	//x    an absolute path
//	~/x    a path in the home directory
//	/x     a path relative to the project
//	./x    a path relative to the working directory, which is the project
//	x      the same; without a slash inside, x matches in every directory
//
// A pattern also matches everything below a directory that it matches.
func (t *translation) globs(spec string) []string {
	spec = strings.TrimPrefix(spec, "!")
	glob, anywhere := filepath.ToSlash(spec), false
	switch {
	case strings.HasPrefix(glob, "//"):
		glob = t.local(glob[1:])
	case strings.HasPrefix(glob, "~/"):
		if t.opts.Home == "" {
			glob = "**/" + glob[2:]
			break
		}
		glob = t.local(filepath.ToSlash(t.opts.Home) + glob[1:])
	default:
		anchored := strings.HasPrefix(glob, "/")
		glob = strings.TrimPrefix(strings.TrimPrefix(glob, "/"), "./")
		anywhere = !anchored && !strings.Contains(strings.TrimSuffix(glob, "/"), "/")
	}
	glob = strings.TrimSuffix(glob, "/")
	for strings.Contains(glob, "**/**") { // one ** has the same meaning
		glob = strings.ReplaceAll(glob, "**/**", "**")
	}
	if !doublestar.ValidatePattern(glob) || glob == "" || strings.HasPrefix(glob, "../") {
		if t.decision == permit.RuleAllow {
			t.rulef("Belay cannot translate the path, so the rule has no effect")
			return nil
		}
		t.rulef("Belay cannot translate the path, so it applies the rule to all files")
		return []string{"**", "/**"}
	}
	globs := []string{glob}
	if anywhere {
		globs = append(globs, "**/"+glob)
	}
	if t.decision == permit.RuleAllow {
		return globs[:1]
	}
	for _, one := range slices.Clone(globs) {
		if !strings.HasSuffix(one, "/**") {
			globs = append(globs, one+"/**")
		}
		if strings.ContainsAny(one, "{}") { // .gitignore has no alternatives
			globs = append(globs, strings.NewReplacer("{", `\{`, "}", `\}`).Replace(one))
		}
	}
	return globs
}

// local returns an absolute path as package permit writes it: relative, if it is inside the
// project.
func (t *translation) local(path string) string {
	if rest, ok := strings.CutPrefix(path, filepath.ToSlash(t.opts.Project)+"/"); ok {
		return rest
	}
	return path
}

// clean matches the words that a rule of package permit can have.
var clean = lazyregexp.New(`^[A-Za-z0-9_./:=@%+,~-]+$`)

// command translates a rule about commands. A * matches any text, also several words. A
// pattern that ends with :* or with a blank and * also matches without more words.
func (t *translation) command(spec string) {
	if spec == "" {
		t.whole("shell")
		return
	}
	pattern, open := strings.CutSuffix(spec, ":*")
	if !open {
		pattern, open = strings.CutSuffix(spec, " *")
	}
	words := strings.Fields(pattern)
	usable := 0 // how many words a rule can have
	for usable < len(words) && clean.MatchString(words[usable]) {
		usable++
	}
	exact := usable == len(words) && usable > 0
	switch t.decision {
	case permit.RuleAllow:
		t.allowCommand(words, exact, open)
	case permit.RuleAsk:
		if !exact {
			t.rulef("Belay asks about more commands than Claude Code")
		}
		t.add(t.decision, "shell", strings.Join(words[:usable], " "))
	case permit.RuleDeny:
		t.guard(permit.Guard{
			ID: fmt.Sprintf("%s: %s", t.opts.Shown, t.text), Tools: []string{"shell"}, Deny: commandExpression(spec),
			Reason: fmt.Sprintf("%s denies %s", t.settings.at(t.opts.Shown, t.text), t.text),
		})
		if exact {
			t.add(t.decision, "shell", strings.Join(words, " "))
		}
		if exact && !open {
			t.rulef("Belay denies every command that begins with these words")
		}
	}
}

// allowCommand adds a rule that allows a command. It only translates patterns that package
// permit can express.
func (t *translation) allowCommand(words []string, exact, open bool) {
	if !exact {
		t.rulef("Belay cannot translate the pattern, so it asks as usual")
		return
	}
	if open {
		words = append(words, "*")
	}
	t.add(t.decision, "shell", strings.Join(words, " "))
}

// commandExpression returns a regular expression that matches a command line in which one
// command matches a pattern of Claude Code. It may match more.
func commandExpression(spec string) string {
	pattern, open := strings.CutSuffix(spec, ":*")
	if !open {
		pattern, open = strings.CutSuffix(spec, " *")
	}
	var b strings.Builder
	b.WriteString("(?s)(?:^|[;&|\n(){}`])\\s*")
	for i, part := range strings.Split(pattern, "*") {
		if i > 0 {
			b.WriteString(".*")
		}
		for j, word := range blanks.Split(part, -1) {
			if j > 0 {
				b.WriteString(`\s+`)
			}
			b.WriteString(regexp.QuoteMeta(word))
		}
	}
	switch {
	case open:
		b.WriteString("(?:$|[\\s;&|(){}`<>])")
	case !strings.HasSuffix(pattern, "*"):
		b.WriteString("\\s*(?:$|[;&|\n(){}`<>]|\\d[<>])")
	}
	return b.String()
}

var blanks = lazyregexp.New(`\s+`)
