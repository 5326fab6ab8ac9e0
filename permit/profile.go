package permit

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Profile describes a tool. It names fields at the top level of the tool's input. Each
// field has a string or a list of strings.
type Profile struct {
	// Zone is the lowest zone of a call.
	Zone Zone
	// Reads and Writes are fields with paths, relative to the project or absolute. The
	// floor denies paths outside the project and Options.Roots.
	Reads, Writes []string
	// URLs are fields with addresses that the tool fetches from.
	URLs []string
	// Command is a field with a shell command.
	Command string

	around  bool     // without a path, the tool reads the project directory
	tree    bool     // the tool reads everything below a directory
	filters []string // fields with patterns of file names below the path
	globs   []string // fields with patterns of paths, relative to the path
	unknown bool     // nothing is known about the tool
}

// stock returns the profiles of the tools of the packages toolbox and webtool.
func stock() map[string]Profile {
	return map[string]Profile{
		"read":    {Reads: []string{"path"}},
		"list":    {Reads: []string{"path"}, around: true},
		"glob":    {Reads: []string{"path"}, globs: []string{"pattern"}},
		"grep":    {Reads: []string{"path"}, filters: []string{"glob"}, around: true, tree: true},
		"write":   {Zone: ZoneWorkspace, Writes: []string{"path"}},
		"edit":    {Zone: ZoneWorkspace, Writes: []string{"path"}},
		shellTool: {Command: "command"},

		"shell_list": {}, "shell_output": {}, "shell_stop": {}, // of commands that the session has started
		"todo_write": {}, "present_plan": {},

		"web_fetch":  {Zone: ZoneNetwork, URLs: []string{"url"}},
		"web_search": {Zone: ZoneNetwork},
	}
}

// profiles has the descriptions of tools.
type profiles struct {
	exact    map[string]*Profile
	patterns []string // the longest first
	byGlob   map[string]*Profile

	mu    sync.Mutex
	found map[string]*Profile // by tool, for tools that match a pattern; at most mostRemembered
}

// mostRemembered limits the caches that have names of tools as keys.
const mostRemembered = 1_000

func newProfiles(given map[string]Profile) (*profiles, error) {
	p := &profiles{exact: map[string]*Profile{}, byGlob: map[string]*Profile{}, found: map[string]*Profile{}}
	stock := stock()
	for name, profile := range stock {
		p.exact[name] = &profile
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		profile := given[name]
		if profile.Zone < ZoneSafe || profile.Zone > ZoneNever {
			problems = append(problems, fmt.Errorf("permit: tool %q: %d is not a zone: use 0 to 6", name, profile.Zone))
		}
		if _, err := path.Match(name, ""); err != nil || name == "" {
			problems = append(problems, fmt.Errorf("permit: tool %q: the name is not a valid pattern", name))
		}
		if _, ok := stock[name]; ok {
			problems = append(problems, fmt.Errorf("permit: tool %q is part of Belay, so settings cannot describe it: "+
				"use rules and guards for it, or rename your own tool", name))
			continue
		}
		if !strings.ContainsAny(name, `*?[\`) {
			p.exact[name] = &profile
			continue
		}
		p.byGlob[name] = &profile
		p.patterns = append(p.patterns, name)
	}
	slices.SortStableFunc(p.patterns, func(a, b string) int { return len(b) - len(a) })
	return p, errors.Join(problems...)
}

// misspelt returns an error if a name is not a known tool, but similar to one. A setting
// for such a name would probably never apply. misspelt accepts patterns and all other
// names, because tools may come from anywhere.
func (p *profiles) misspelt(tool string) error {
	if p.of(tool) != nothingKnown || strings.ContainsAny(tool, `*?[\`) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.exact)) {
		if nearlyEqual(strings.ToLower(tool), strings.ToLower(name)) {
			return fmt.Errorf("there is no tool %q: did you mean %q? If you have a tool with this name, describe it under permit.tools (Options.Tools)", tool, name)
		}
	}
	return nil
}

// nearlyEqual reports whether two words differ by one missing letter, or by two
// neighbours that are swapped. Words that differ in a replaced letter are not nearly
// equal, because many valid names differ in one letter, such as lint and list.
func nearlyEqual(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	at := 0
	for at < len(a) && a[at] == b[at] {
		at++
	}
	switch len(b) - len(a) {
	case 0:
		return a == b || at+1 < len(a) && a[at] == b[at+1] && a[at+1] == b[at] && a[at+2:] == b[at+2:]
	case 1:
		return a[at:] == b[at+1:]
	default:
		return false
	}
}

// nothingKnown is the profile of tools without a description.
var nothingKnown = &Profile{Zone: ZoneMachine, unknown: true}

func (p *profiles) of(tool string) *Profile {
	if profile, ok := p.exact[tool]; ok {
		return profile
	}
	if len(p.patterns) == 0 {
		return nothingKnown
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if profile, ok := p.found[tool]; ok {
		return profile
	}
	profile := nothingKnown
	for _, pattern := range p.patterns {
		if ok, err := path.Match(pattern, tool); ok && err == nil {
			profile = p.byGlob[pattern]
			break
		}
	}
	if len(p.found) < mostRemembered {
		p.found[tool] = profile
	}
	return profile
}

// shellTool is the tool of package toolbox that runs commands.
const shellTool = "shell"

func (f *Floor) findings(tool string, p *Profile, fields []member) []Finding {
	if p.Command != "" {
		return f.commandFindings(tool, p, fields)
	}
	found := make([]Finding, 0, 2)
	if p.Zone > ZoneSafe || p.unknown {
		why := ""
		if p.unknown {
			why = "the tool has no description under permit.tools"
		}
		found = append(found, Finding{Kind: KindTool, Subject: tool, Zone: p.Zone, Why: why, opaque: p.unknown})
	}
	around := p.around
	for i := range fields {
		name := fields[i].name
		switch {
		case (among(p.Reads, name) || among(p.Writes, name) || among(p.URLs, name)) && !shaped(&fields[i]):
			found = append(found, Finding{Kind: KindUnknown, Subject: tool, Zone: ZoneMachine, Why: fmt.Sprintf("its field %q must be a string or a list of strings", name), Protection: inputReadings})
		case among(p.Reads, name):
			before := len(found)
			found = f.pathFindings(found, &fields[i], reads)
			around = around && len(found) == before
		case among(p.Writes, name):
			found = f.pathFindings(found, &fields[i], changes)
		case among(p.globs, name):
			found = f.globFindings(found, &fields[i], pathOf(p, fields), true)
		case among(p.filters, name):
			found = f.globFindings(found, &fields[i], "", false)
		case among(p.URLs, name):
			found = f.urlFindings(found, &fields[i])
		case p.unknown:
			found = f.guess(found, &fields[i])
		}
	}
	if around {
		found = append(found, Finding{Kind: KindRead, Subject: "."})
	}
	for i := range found {
		if p.tree && found[i].Kind == KindRead {
			found[i].tree = found[i].Subject
		}
	}
	return found
}

// pathOf returns the directory that the patterns of a call are relative to, or "" for the
// project.
func pathOf(p *Profile, fields []member) string {
	for i := range fields {
		if text, ok := fields[i].text(); ok && among(p.Reads, fields[i].name) {
			return text
		}
	}
	return ""
}

// among reports whether a list has a field name. It ignores case, as many JSON decoders
// do.
func among(list []string, name string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
}

func (f *Floor) commandFindings(tool string, p *Profile, fields []member) []Finding {
	for i := range fields {
		if !strings.EqualFold(fields[i].name, p.Command) {
			continue
		}
		if command, ok := fields[i].text(); ok {
			found := f.analyseIn(command, f.sandboxed && tool == shellTool)
			if p.Zone > ZoneSafe {
				found = append(found, Finding{Kind: KindTool, Subject: tool, Zone: p.Zone})
			}
			return found
		}
	}
	return []Finding{{Kind: KindUnknown, Subject: tool, Zone: ZoneMachine, Why: fmt.Sprintf("its field %q has no command", p.Command)}}
}

// shaped reports whether the value of a field is a text, a list of texts, or null.
func shaped(m *member) bool {
	if _, ok := m.text(); ok || string(m.value) == "null" {
		return true
	}
	if len(m.value) == 0 || m.value[0] != '[' {
		return false
	}
	s := scanner{data: m.value, at: 1}
	for s.space(); !s.take(']'); s.space() {
		value := s.value()
		if _, ok := unquote(value); value == nil || !ok {
			return false
		}
		if s.space(); !s.take(',') {
			return s.take(']')
		}
	}
	return true
}

// texts returns the strings in a field. It skips values of other types.
func texts(m *member) []string {
	if text, ok := m.text(); ok {
		return []string{text}
	}
	var list []string
	if len(m.value) > 0 && m.value[0] == '[' {
		s := scanner{data: m.value, at: 1}
		for {
			s.space()
			value := s.value()
			if value == nil {
				return list
			}
			if text, ok := unquote(value); ok {
				list = append(list, text)
			}
			s.space()
			if !s.take(',') {
				return list
			}
		}
	}
	return nil
}

func (f *Floor) pathFindings(found []Finding, m *member, do effect) []Finding {
	for _, text := range texts(m) {
		found = append(found, f.fileFinding(text, do))
	}
	return found
}

// fileFinding judges a path that a file tool uses.
func (f *Floor) fileFinding(text string, do effect) Finding {
	if strings.ContainsRune(text, 0) {
		return Finding{Kind: KindUnknown, Subject: text, Zone: ZoneMachine, Why: "the path contains a zero byte", Protection: filesOutside}
	}
	native, known := f.expanded(text)
	if !known {
		return Finding{Kind: KindUnknown, Subject: text, Zone: ZoneMachine, Why: "~ may mean a home directory: if it is a file name, write ./ before it", Protection: filesOutside}
	}
	var s spot
	if filepath.IsAbs(native) {
		s = f.locateFrom(filepath.VolumeName(native)+string(filepath.Separator), native)
	} else {
		s = f.locateFrom(filepath.FromSlash(f.project.path), native)
	}
	return f.judgePath(&s, do, true)
}

// expanded replaces ~ in a path with the home directory, as many tools do. It returns
// false if the home directory is unknown.
func (f *Floor) expanded(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "~")
	switch {
	case !ok:
		return filepath.FromSlash(text), true
	case f.home.path == "" || rest != "" && rest[0] != '/':
		return "", false
	default:
		return filepath.FromSlash(f.home.path + rest), true
	}
}

// globFindings judges the part of a pattern before its first wildcard. dir is the
// directory that the pattern is relative to. If always is not set, it judges only
// patterns that may lead out of that directory.
func (f *Floor) globFindings(found []Finding, m *member, dir string, always bool) []Finding {
	for _, text := range texts(m) {
		away := strings.Contains(text, "..") || strings.HasPrefix(text, "~") || filepath.IsAbs(filepath.FromSlash(text))
		if !away && !always {
			continue
		}
		fixed := text[:strings.IndexAny(text+"*", "*?[{")]
		if len(fixed) < len(text) {
			fixed = fixed[:strings.LastIndex(fixed, "/")+1] // a/b* is in the directory a
		}
		place := fixed
		if !filepath.IsAbs(filepath.FromSlash(text)) && dir != "" && !strings.HasPrefix(text, "~") {
			place = dir + "/" + fixed
		}
		found = append(found, f.fileFinding(place, reads))
		if strings.Contains(text[len(fixed):], "..") {
			found = append(found, Finding{Kind: KindRead, Subject: text, Zone: ZoneMachine, Why: "cannot determine which directory this pattern leads to", Protection: filesOutside})
		}
	}
	return found
}

// urlFindings judges addresses. It judges a URL of a local file as a path of a file tool.
func (f *Floor) urlFindings(found []Finding, m *member) []Finding {
	for _, text := range texts(m) {
		if r := judgeURL(text); r.file != "" {
			found = append(found, f.fileFinding(r.file, reads))
		}
		found = append(found, urlFinding(text, ZoneNetwork))
	}
	return found
}

// guess judges a field of a tool without a description, by the field's name and text. It
// may add a protection. It also adds URLs and paths as findings, so that rules and guards
// can match them. The tool itself is zone 5 anyway.
func (f *Floor) guess(found []Finding, m *member) []Finding {
	for _, text := range texts(m) {
		var more []Finding
		named := false // the name of the field shows that it has a URL or a path
		switch name := strings.ToLower(m.name); {
		case strings.Contains(text, "://") || strings.HasSuffix(name, "url") || strings.HasSuffix(name, "uri") || name == "host" || name == "endpoint":
			more, named = append(more, urlFinding(text, ZoneNetwork)), true
		case name == "command" || name == "cmd" || name == "script":
			more = f.analyse(text)
		case len(text) < 4096 && text != "" && !strings.ContainsAny(text, "\n\x00"):
			native, ok := f.expanded(text)
			if !ok {
				native = filepath.FromSlash(text)
			}
			s := f.locateFrom(filepath.FromSlash(f.project.path), native)
			if filepath.IsAbs(native) {
				s = f.locateFrom(filepath.VolumeName(native)+string(filepath.Separator), native)
			}
			if s.inside || filepath.IsAbs(native) || strings.HasPrefix(text, "..") {
				more = append(more, f.judgePath(&s, changes, false))
				named = strings.Contains(name, "path") || strings.Contains(name, "file") || strings.HasPrefix(name, "dir") || strings.HasSuffix(name, "dir")
			}
		}
		for _, one := range more {
			if one.Protection == shellOutside {
				one.Protection = ""
			}
			if named || one.Protection != "" || one.Zone >= ZoneNever {
				found = append(found, one)
			}
		}
	}
	return found
}
