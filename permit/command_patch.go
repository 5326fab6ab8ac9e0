package permit

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

func patchCommands(t table) { t.add("patch gpatch", patchCommand) }

// patchCommand judges patch. The text of the patch determines which files change.
func patchCommand(c *invoked) {
	o := c.options(c.args, "* p= strip= i= input= d= directory= o=> output=> r=> reject-file=> B=! prefix=! z= suffix= V= version-control= F= fuzz= D= ifdef= g= get= Y=! "+
		"basename-prefix=! l E N R f s t u c n e! ed! b dry-run")
	for _, suffix := range o.values("z", "suffix") {
		if !suffix.known || !oneOf(suffix.text, plainSuffixes) {
			c.unknown("cannot determine which files it writes")
		}
	}
	strip, _ := o.value("p", "strip")
	from, given := o.value("i", "input")
	if len(o.rest) > 1 {
		from, given = o.rest[1], true
	}
	judge := func() {
		if len(o.rest) > 0 {
			c.write(o.rest[0])
		}
		if given {
			c.patchFile(from, strip.text)
		} else {
			c.patch(c.stdin, strip.text)
		}
	}
	c.zone(ZoneWorkspace, "")
	if dir, ok := o.value("d", "directory"); ok {
		if given {
			c.read(from)
		}
		c.in(dir, judge)
		return
	}
	judge()
}

// longestPatch is the largest patch that is judged, in bytes.
const longestPatch = 1 << 20

// patchFile judges a patch in a file. If the line may have written the file, the patch is
// unknown.
func (c *invoked) patchFile(file arg, strip string) {
	c.read(file)
	if file.known && !file.pipe && file.text == "-" {
		c.patch(c.stdin, strip)
		return
	}
	text, ok := c.contents(file)
	c.patch(arg{text: text, known: ok}, strip)
}

// contents returns the contents of a file. They are unknown if the line may have changed
// the file.
func (c *invoked) contents(file arg) (string, bool) {
	if !file.isText() || c.ranBefore() || c.moved != "" {
		return "", false
	}
	spots := c.spots(file, reads)
	if len(spots) != 1 {
		return "", false
	}
	info, err := os.Stat(filepath.FromSlash(spots[0].path))
	if err != nil || !info.Mode().IsRegular() || info.Size() > longestPatch {
		return "", false
	}
	data, err := os.ReadFile(filepath.FromSlash(spots[0].path))
	return string(data), err == nil
}

// ranBefore reports whether an earlier command of the line changed files, or may have
// changed some.
func (c *invoked) ranBefore() bool {
	for i := range c.found {
		if f := &c.found[i]; i != c.finding && (f.Kind == KindWrite || f.Zone >= ZoneBuild) {
			return true
		}
	}
	return false
}

func (c *invoked) patch(text arg, strip string) {
	if !text.known {
		c.confinedOr("cannot determine what the patch changes")
		c.bringsLinks(c.name)
		return
	}
	n, err := strconv.Atoi(strip)
	if err != nil {
		n = 1
	}
	if strings.Contains(text.text, "mode 120000") {
		c.unknown("the patch makes a link")
		c.bringsLinks(c.name)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(text.text) {
		if len(seen) > mostFindings/2 {
			c.unknown("the patch changes too much to check")
			return
		}
		name, ok := patchedName(line)
		if !ok || name == "/dev/null" || seen[name] {
			continue
		}
		seen[name] = true
		if privatePath(path.Clean(name)) != "" || path.IsAbs(name) { // patch may use the name with all its directories
			c.write(literal(name))
		}
		c.write(literal(stripped(name, n)))
	}
	if len(seen) == 0 && text.text != "" {
		c.unknown("cannot determine what the patch changes")
	}
}

// patchedName returns the file name in a header line of a patch.
func patchedName(line string) (string, bool) {
	line = strings.TrimRight(line, "\r\n")
	for _, begin := range []string{"+++ ", "--- ", "*** ", "rename to ", "rename from ", "copy to ", "Index: ", "diff --git "} {
		rest, ok := strings.CutPrefix(line, begin)
		if !ok {
			continue
		}
		if begin == "diff --git " {
			fields := strings.Fields(rest)
			if len(fields) == 0 {
				return "", false
			}
			rest = fields[len(fields)-1]
		}
		name, _, _ := strings.Cut(rest, "\t")
		if quoted, err := strconv.Unquote(name); err == nil {
			name = quoted
		}
		if name = strings.TrimSpace(name); strings.HasPrefix(begin, "re") || strings.HasPrefix(begin, "co") {
			name = "b/" + name // in the other lines, a/ or b/ comes before the name
		}
		return name, name != ""
	}
	return "", false
}

// stripped returns a path without its first n directories.
func stripped(name string, n int) string {
	for ; n > 0; n-- {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			break
		}
		name = strings.TrimLeft(rest, "/")
	}
	return name
}
