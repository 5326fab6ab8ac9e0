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

// Profile says what a tool does. Field names are those of the top level of its
// input; a field may hold a string or a list of strings.
type Profile struct {
	// Zone is the least zone of its calls.
	Zone Zone
	// Reads and Writes are fields with paths, relative to the project or absolute.
	// Paths outside are denied.
	Reads, Writes []string
	// URLs are fields with addresses that it fetches from.
	URLs []string
	// Command is a field with a shell command.
	Command string

	globs   []string // fields with patterns of paths
	unknown bool     // nothing is known about the tool
}

// stock are the tools of package toolbox.
func stock() map[string]Profile {
	return map[string]Profile{
		"read":  {Reads: []string{"path"}},
		"list":  {Reads: []string{"path"}},
		"glob":  {Reads: []string{"path"}, globs: []string{"pattern"}},
		"grep":  {Reads: []string{"path"}, globs: []string{"glob"}},
		"write": {Zone: ZoneWorkspace, Writes: []string{"path"}},
		"edit":  {Zone: ZoneWorkspace, Writes: []string{"path"}},
		"shell": {Command: "command"},
	}
}

// profiles finds the profile of a tool.
type profiles struct {
	exact    map[string]*Profile
	patterns []string // the longest first
	byGlob   map[string]*Profile

	mu    sync.Mutex
	found map[string]*Profile // by patterns; bounded
}

// mostRemembered bounds what is remembered by the names of tools.
const mostRemembered = 1_000

func newProfiles(given map[string]Profile) (*profiles, error) {
	p := &profiles{exact: map[string]*Profile{}, byGlob: map[string]*Profile{}, found: map[string]*Profile{}}
	for name, profile := range stock() {
		p.exact[name] = &profile
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		profile := given[name]
		if profile.Zone < ZoneSafe || profile.Zone > ZoneNever {
			problems = append(problems, fmt.Errorf("permit: tool %q: %d is no zone: zones are 0 to 6", name, profile.Zone))
		}
		if _, err := path.Match(name, ""); err != nil || name == "" {
			problems = append(problems, fmt.Errorf("permit: tool %q: the name is no pattern", name))
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

// nothingKnown is the profile of tools that nobody described.
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

// findings says what a call does.
func (f *Floor) findings(tool string, p *Profile, fields []member) []Finding {
	if p.Command != "" {
		return f.commandFindings(tool, p, fields)
	}
	found := make([]Finding, 0, 2)
	if p.Zone > ZoneSafe || p.unknown {
		why := ""
		if p.unknown {
			why = "nobody has said what the tool does"
		}
		found = append(found, Finding{Kind: KindTool, Subject: tool, Zone: p.Zone, Why: why})
	}
	for i := range fields {
		name := fields[i].name
		switch {
		case among(p.Reads, name):
			found = f.pathFindings(found, &fields[i], reads)
		case among(p.Writes, name):
			found = f.pathFindings(found, &fields[i], changes)
		case among(p.globs, name):
			found = f.globFindings(found, &fields[i])
		case among(p.URLs, name):
			found = urlFindings(found, &fields[i])
		case p.unknown:
			found = f.guess(found, &fields[i])
		}
	}
	return found
}

// among reports whether a field is one of a list. The case of letters does not
// matter, as it does not to many readers of JSON.
func among(list []string, name string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
}

func (f *Floor) commandFindings(tool string, p *Profile, fields []member) []Finding {
	for i := range fields {
		if !strings.EqualFold(fields[i].name, p.Command) {
			continue
		}
		if command, ok := fields[i].text(); ok {
			found := f.analyse(command)
			if p.Zone > ZoneSafe {
				found = append(found, Finding{Kind: KindTool, Subject: tool, Zone: p.Zone})
			}
			return found
		}
	}
	return []Finding{{Kind: KindUnknown, Subject: tool, Zone: ZoneMachine, Why: fmt.Sprintf("its field %q holds no command", p.Command)}}
}

// texts are the strings that a field holds. A value of another kind is none.
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

// fileFinding judges a path of a file tool.
func (f *Floor) fileFinding(text string, do effect) Finding {
	if strings.ContainsRune(text, 0) {
		return Finding{Kind: KindUnknown, Subject: text, Zone: ZoneMachine, Why: "the path has a zero byte in it", Protection: filesOutside}
	}
	native := filepath.FromSlash(text)
	var s spot
	if filepath.IsAbs(native) {
		s = f.locateFrom(filepath.VolumeName(native)+string(filepath.Separator), native)
	} else {
		s = f.locateFrom(filepath.FromSlash(f.project.path), native)
	}
	return f.judgePath(&s, do, true)
}

// globFindings judges the fixed part of a pattern of paths.
func (f *Floor) globFindings(found []Finding, m *member) []Finding {
	for _, text := range texts(m) {
		if !strings.Contains(text, "..") && !filepath.IsAbs(filepath.FromSlash(text)) {
			continue
		}
		fixed := text[:strings.IndexAny(text+"*", "*?[{")]
		found = append(found, f.fileFinding(fixed, reads))
		if strings.Contains(text[len(fixed):], "..") {
			found = append(found, Finding{Kind: KindRead, Subject: text, Zone: ZoneMachine, Why: "it cannot be told where this leads", Protection: filesOutside})
		}
	}
	return found
}

func urlFindings(found []Finding, m *member) []Finding {
	for _, text := range texts(m) {
		found = append(found, urlFinding(text, ZoneNetwork))
	}
	return found
}

// guess looks at a field of a tool that nobody described. It may raise a protection
// and nothing else: such a tool is zone 5 as it is.
func (f *Floor) guess(found []Finding, m *member) []Finding {
	for _, text := range texts(m) {
		var more []Finding
		switch name := strings.ToLower(m.name); {
		case strings.Contains(text, "://") || strings.HasSuffix(name, "url") || strings.HasSuffix(name, "uri") || name == "host" || name == "endpoint":
			more = append(more, urlFinding(text, ZoneNetwork))
		case name == "command" || name == "cmd" || name == "script":
			more = f.analyse(text)
		case len(text) < 4096 && text != "" && !strings.ContainsAny(text, "\n\x00"):
			native := filepath.FromSlash(text)
			s := f.locateFrom(filepath.FromSlash(f.project.path), native)
			if filepath.IsAbs(native) {
				s = f.locateFrom(filepath.VolumeName(native)+string(filepath.Separator), native)
			}
			if s.inside || filepath.IsAbs(native) || strings.HasPrefix(text, "..") {
				more = append(more, f.judgePath(&s, changes, false))
			}
		}
		for _, one := range more {
			if one.Protection != "" && one.Protection != shellOutside || one.Zone >= ZoneNever {
				found = append(found, one)
			}
		}
	}
	return found
}
