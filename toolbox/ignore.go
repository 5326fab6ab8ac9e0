package toolbox

import (
	"bufio"
	"io"
	"path"
	"regexp"
	"strings"
)

// ignores has the rules of one .gitignore file. above has the rules of the directories
// above. A nil *ignores excludes nothing.
type ignores struct {
	above *ignores
	dir   string // the directory of the .gitignore file; "." is the project
	rules []ignoreRule
}

// ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	negated  bool
	dirOnly  bool
	anchored bool           // matched against the path below dir, and not against the file name only
	literal  string         // the exact name, if the pattern has no special characters
	suffix   string         // the end of the name, if the pattern is * and a text
	re       *regexp.Regexp // all other patterns
}

// ignored reports whether a path is excluded. The .gitignore file nearest to the path
// decides, and in that file the last rule that matches. The caller must check the
// directories above the path.
func (g *ignores) ignored(name string, isDir bool) bool {
	for ; g != nil; g = g.above {
		rel := name
		if g.dir != "." {
			var ok bool
			if rel, ok = strings.CutPrefix(name, g.dir+"/"); !ok {
				continue
			}
		}
		base := path.Base(rel)
		for i := len(g.rules) - 1; i >= 0; i-- {
			if g.rules[i].matches(rel, base, isDir) {
				return !g.rules[i].negated
			}
		}
	}
	return false
}

func (r *ignoreRule) matches(rel, base string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	name := base
	if r.anchored {
		name = rel
	}
	switch {
	case r.literal != "":
		return name == r.literal
	case r.suffix != "":
		return strings.HasSuffix(name, r.suffix)
	default:
		return r.re.MatchString(name)
	}
}

// maxIgnoreFile is how many bytes of a .gitignore file are read.
const maxIgnoreFile = 1 << 20

// parseIgnore reads the .gitignore file of a directory.
func parseIgnore(r io.Reader, dir string, above *ignores) (*ignores, error) {
	g := &ignores{above: above, dir: dir}
	scanner := bufio.NewScanner(io.LimitReader(r, maxIgnoreFile))
	scanner.Buffer(nil, maxIgnoreFile+1)
	for first := true; scanner.Scan(); first = false {
		line := scanner.Text()
		if first {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if rule, ok := parseIgnoreLine(line); ok {
			g.rules = append(g.rules, rule)
		}
	}
	if len(g.rules) == 0 {
		return above, scanner.Err()
	}
	return g, scanner.Err()
}

func parseIgnoreLine(line string) (ignoreRule, bool) {
	var r ignoreRule
	line = trimTrailingSpaces(strings.TrimSuffix(line, "\r"))
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negated, line = true, line[1:]
	}
	if cut, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, cut
	}
	if strings.Contains(line, "/") {
		r.anchored, line = true, strings.TrimPrefix(line, "/")
	}
	if line == "" {
		return r, false
	}
	rest, star := strings.CutPrefix(line, "*")
	switch special := `*?[]\`; {
	case !strings.ContainsAny(line, special):
		r.literal = line
	case star && !r.anchored && rest != "" && !strings.ContainsAny(rest, special):
		r.suffix = rest
	default:
		var err error
		if r.re, err = compilePath(line, false); err != nil {
			return r, false // an invalid pattern matches nothing, as in git
		}
	}
	return r, true
}

// trimTrailingSpaces removes spaces at the end, but keeps a space after a backslash.
func trimTrailingSpaces(line string) string {
	end := len(line)
	for end > 0 && line[end-1] == ' ' {
		end--
	}
	slashes := 0
	for slashes < end && line[end-1-slashes] == '\\' {
		slashes++
	}
	if end < len(line) && slashes%2 == 1 {
		end++
	}
	return line[:end]
}
