package permit

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
)

// effect is what a command does to a path.
type effect int

const (
	reads effect = iota
	changes
	rewrites // changes a path and everything below it
	removes  // removes a path and everything below it
)

// spot is the file or directory that a path leads to, after following links as far as
// they exist.
type spot struct {
	path   string // absolute and clean, with slashes, without links
	rel    string // relative to the project or extra root that contains it; "." is the root itself
	inside bool   // in the project
	extra  bool   // in an extra root
	temp   bool   // in the temporary directory
	tree   bool   // the spot includes everything below the path
	below  bool   // stands for files below the directory of path
	err    error  // why the path could not be followed
}

// name returns the spot as the subject of a finding. In the project, the name is
// relative.
func (s *spot) name() string {
	if s.inside {
		return s.rel
	}
	return s.path
}

// root is a directory with which paths are compared.
type root struct{ path string } // absolute, without links, with slashes

func newRoot(dir string) (root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return root{}, err
	}
	if direct, err := filepath.EvalSymlinks(abs); err == nil {
		abs = direct
	}
	return root{filepath.ToSlash(abs)}, nil
}

// holds returns a path relative to the root. ok is false if the path is neither the root
// nor below it. The path must be clean.
func (r root) holds(path string) (rel string, ok bool) {
	switch {
	case r.path == "":
		return "", false
	case path == r.path:
		return ".", true
	case r.path == "/":
		return path[1:], true
	case len(path) > len(r.path) && path[len(r.path)] == '/' && strings.HasPrefix(path, r.path):
		return path[len(r.path)+1:], true
	default:
		return "", false
	}
}

// locate follows the links of an absolute path.
func (f *Floor) locate(path string) spot {
	direct, err := follow(path)
	s := spot{path: filepath.ToSlash(direct), err: err}
	if rel, ok := f.project.holds(s.path); ok {
		s.rel, s.inside = rel, true
		return s
	}
	for _, r := range f.extra.list() {
		if rel, ok := r.holds(s.path); ok {
			s.rel, s.extra = rel, true
			return s
		}
	}
	_, s.temp = f.temp.holds(s.path)
	return s
}

// entry returns the spot of a name in a directory. If the name is a link, entry does not
// follow it.
func (f *Floor) entry(dir *spot, name string) spot {
	s := *dir
	s.path = strings.TrimSuffix(s.path, "/") + "/" + name
	if s.inside || s.extra {
		s.rel = path.Join(s.rel, name)
		return s
	}
	if rel, ok := f.project.holds(s.path); ok { // dir may be above the project
		s.rel, s.inside = rel, true
	}
	_, s.temp = f.temp.holds(s.path)
	return s
}

// mostLinks is how many symbolic links a path may contain.
const mostLinks = 40

var (
	errLinks = errors.New("it leads through too many symbolic links")
	errMagic = errors.New("it leads through a virtual path of the kernel, such as /proc")
)

// follow follows the symbolic links of an absolute path as far as it exists. It does not
// follow virtual paths such as /proc/self, because the command is another process, for
// which these paths mean something else.
func follow(path string) (string, error) {
	path = filepath.Clean(path)
	if isMagic(path) || direct(path) {
		return path, nil
	}
	volume := filepath.VolumeName(path)
	done := volume + string(filepath.Separator)
	todo := strings.Split(strings.Trim(path[len(volume):], string(filepath.Separator)), string(filepath.Separator))
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		if isMagic(next) && slices.Contains(todo, "..") {
			return next, errMagic
		}
		if isMagic(next) {
			return filepath.Join(append([]string{next}, todo...)...), nil
		}
		info, err := os.Lstat(next) //nolint:gosec // looking where a path leads is the point
		switch {
		case errors.Is(err, fs.ErrNotExist) || isNotDirectory(err):
			return filepath.Join(append([]string{next}, todo...)...), nil
		case err != nil:
			return filepath.Join(append([]string{next}, todo...)...), err
		case info.Mode()&fs.ModeSymlink == 0:
			done = next
			continue
		}
		if links++; links > mostLinks {
			return path, errLinks
		}
		target, err := os.Readlink(next)
		if err != nil {
			return next, err
		}
		if filepath.IsAbs(target) {
			done = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		todo = append(strings.Split(target, string(filepath.Separator)), todo...)
	}
	return done, nil
}

// isNotDirectory reports whether an error says that a part of a path is a file.
func isNotDirectory(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "not a directory")
}

// isMagic reports whether a path is a virtual path of the kernel.
func isMagic(path string) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	switch path {
	case "/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	return strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/fd/")
}

// isStream reports whether a path stands for a file that the process has already opened.
// That file was judged when it was opened. A path below it is not a stream, because the
// open file may be a directory.
func isStream(path string) bool {
	number, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && isNumber(number) || oneOf(path, "/dev/stdin /dev/stdout /dev/stderr")
}

// harmlessDevices are devices that are safe to read and write.
var harmlessDevices = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
	"/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty",
}

// systemDirectories are the directories of the operating system.
var systemDirectories = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/run", "/sbin", "/snap", "/srv", "/sys", "/usr", "/var",
	"/Applications", "/Library", "/System", "/private/etc", "/private/var", "/cores",
	"C:/Windows", "C:/Program Files", "C:/Program Files (x86)", "C:/ProgramData",
}

// harmlessPlaces are paths of the operating system with the same contents on every
// machine: programs, libraries, headers, manuals.
var harmlessPlaces = []string{
	"/bin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share",
	"/usr/local/bin", "/usr/local/go", "/usr/local/include", "/usr/local/lib", "/usr/local/share", "/opt/homebrew/bin", "/opt/homebrew/include", "/opt/homebrew/lib",
	"/opt/homebrew/share", "/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/alpine-release", "/etc/redhat-release",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime",
}

// isHarmlessSystem reports whether a path belongs to the operating system and contains no
// secrets.
func isHarmlessSystem(path string) bool {
	return slices.ContainsFunc(harmlessPlaces, func(dir string) bool { _, ok := (root{dir}).holds(path); return ok })
}

// diskDevices are prefixes of devices that are disks or memory.
var diskDevices = []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "dm-", "md", "loop", "mem", "kmem", "port", "sg", "nbd"}

// isDisk reports whether a path is a device that must not be written.
func isDisk(path string) bool {
	name, ok := strings.CutPrefix(path, "/dev/")
	return ok && slices.ContainsFunc(diskDevices, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// isSystem reports whether a path is in a directory of the operating system.
func isSystem(path string) bool {
	if path == "/" {
		return true
	}
	return slices.ContainsFunc(systemDirectories, func(dir string) bool { _, ok := (root{dir}).holds(path); return ok })
}

// ruinous returns why removing or changing a directory and everything below it would
// cause damage beyond repair. It returns an empty text if there would be no such damage.
func (f *Floor) ruinous(s *spot, do effect) string {
	verb := "changes"
	if do == removes {
		verb = "removes"
	}
	above := func(r root) bool { _, ok := (root{s.path}).holds(r.path); return ok && r.path != "" }
	switch {
	case s.path == "/" || filepath.Dir(s.path) == s.path:
		return "it " + verb + " the whole file system"
	case above(f.home):
		return "it " + verb + " the home directory"
	case above(f.project) && s.path != f.project.path:
		return "it " + verb + " the directory that contains the project"
	case !s.inside && !s.extra && strings.Count(s.path, "/") == 1 && !s.temp && s.path != f.temp.path:
		return "it " + verb + " a directory at the root of the file system"
	default:
		return ""
	}
}

// private returns the protection of a path that controls Belay or git, or an empty text.
// It compares names in the form of plainName.
func (f *Floor) private(s *spot, do effect) string {
	for _, r := range f.protected {
		if _, ok := r.holds(s.path); ok {
			return selfFiles
		}
		if _, ok := (root{s.path}).holds(r.path); ok && do >= rewrites {
			return selfFiles
		}
	}
	for _, r := range f.hooks {
		if _, ok := r.holds(s.path); ok {
			return selfGit
		}
		if _, ok := (root{s.path}).holds(r.path); ok && do >= rewrites {
			return selfGit
		}
	}
	path := s.path
	if s.inside || s.extra {
		path = s.rel
	} else if _, ok := f.home.holds(s.path); !ok {
		return "" // other protections cover paths outside
	}
	if id := privatePath(path); id != "" {
		return id
	}
	if do >= rewrites && s.inside {
		return f.holdsPrivate(s)
	}
	return ""
}

// holdsPrivate returns the protection of the first protected file that is directly in a
// directory. It returns an empty text if there is none.
func (f *Floor) holdsPrivate(s *spot) string {
	dir := filepath.FromSlash(s.path)
	for _, p := range []struct{ name, id string }{{".belay", selfFiles}, {".claude", selfFiles}, {"belay.yaml", selfFiles}, {"belay.yml", selfFiles}, {".git", selfGit}, {".envrc", selfTasks}, {".mcp.json", selfTasks}} {
		if _, err := os.Lstat(filepath.Join(dir, p.name)); err == nil {
			return p.id
		}
	}
	return ""
}

// privatePath returns the protection of a path that controls Belay, git or another
// program, or an empty text. It looks only at the names in the path, not at the file
// system.
func privatePath(path string) string {
	// Check this first, because it is fast and most paths have none of these characters.
	if !strings.ContainsAny(path, ".~") && !strings.Contains(strings.ToLower(path), "belay.y") && isASCII(path) {
		return ""
	}
	parts := strings.Split(path, "/")
	git := -1
	for i, part := range parts {
		switch plain := plainName(part); {
		case plain == ".belay" || plain == ".claude" || plain == "belay~1" || plain == "claude~1":
			return selfFiles
		case (plain == "belay.yaml" || plain == "belay.yml") && i == len(parts)-1:
			return selfFiles
		case plain == ".gitconfig" && i == len(parts)-1:
			return selfGit
		case plain == ".git" || plain == "git~1":
			git = i
		}
	}
	if git < 0 {
		if runsLater(parts) {
			return selfTasks
		}
		return configOfPrograms(parts)
	}
	rest := parts[git+1:]
	if len(rest) == 0 {
		return selfGit // the command would replace .git
	}
	if oneOf(plainName(rest[0]), "rebase-merge rebase-apply sequencer") { // git keeps its next steps there
		return selfGit
	}
	for i, part := range rest {
		switch plain := plainName(part); {
		case plain == "hooks" || plain == "commondir" || plain == "gitdir": // commondir and gitdir tell git where its other files are
			return selfGit
		case (plain == "config" || plain == "config.worktree") && i == len(rest)-1:
			return selfGit
		case plain == "info" && len(rest) == i+2 && plainName(rest[i+1]) == "attributes":
			return selfGit
		}
	}
	return ""
}

// configOfPrograms returns the protection of the user's own configuration of belay or
// git, or an empty text.
func configOfPrograms(parts []string) string {
	for i := 0; i+1 < len(parts); i++ {
		if plainName(parts[i]) == ".config" {
			switch plainName(parts[i+1]) {
			case "belay":
				return selfFiles
			case "git":
				return selfGit
			}
		}
	}
	return ""
}

// plainName returns a file name without everything that some file systems ignore: case,
// trailing dots and blanks, streams, and invisible characters.
func plainName(name string) string {
	if before, _, ok := strings.Cut(name, ":"); ok && before != "" {
		name = before
	}
	name = strings.TrimRight(name, ". ")
	if isASCII(name) {
		return strings.ToLower(name)
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r):
			return -1
		case r >= 0xff01 && r <= 0xff5e: // full-width forms
			return r - 0xfee0
		case r == '\u017f':
			return 's'
		case r == '\u212a':
			return 'k'
		case r == '\u2024' || r == '\u3002' || r == '\ufe52':
			return '.'
		default:
			return r
		}
	}, name))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// judgePath judges what a command does to a path. If strict is set, it judges what a file
// tool does instead. If several protections apply, judgePath uses the first one that is
// not relaxed.
func (f *Floor) judgePath(s *spot, do effect, strict bool) Finding { //nolint:gocognit // one case for each kind of place, in order
	found := Finding{Kind: KindRead, Subject: s.name(), does: do}
	switch {
	case s.below:
		found.tree = path.Dir(found.Subject)
	case s.tree, do >= rewrites:
		found.tree = found.Subject
	}
	if do != reads {
		found.Kind = KindWrite
		if why := f.never(s, do); why != "" {
			found.Zone, found.Why = ZoneNever, why
			return found
		}
	}
	outside := shellOutside
	if strict {
		outside = filesOutside
	}
	held := func(protection, why string) {
		if found.Zone = ZoneMachine; found.Protection == "" || f.relaxed[found.Protection] && !f.relaxed[protection] {
			found.Protection, found.Why = protection, why
		}
	}
	if do != reads {
		if id := f.private(s, do); id != "" {
			held(id, steers(id))
		}
	}
	switch {
	case s.err != nil:
		held(outside, "cannot resolve the path: "+s.err.Error())
	case s.inside || s.extra:
		if do == changes && !strict && hasOtherName(filepath.FromSlash(s.path)) {
			held(shellOutside, "the file has a second name (a hard link), which may be outside the project")
		}
		if do != reads {
			found.Zone = max(found.Zone, ZoneWorkspace)
		}
	case !strict && slices.Contains(harmlessDevices, s.path) && !(isStream(s.path) && (s.tree || s.below || do >= rewrites)):
	case !strict && isStream(s.path) && !s.tree && !s.below && do < rewrites:
	case !strict && do == reads && isHarmlessSystem(s.path):
	case !strict && s.temp:
		if found.Zone < ZoneWorkspace {
			found.Zone, found.Why = ZoneWorkspace, "it is a temporary file"
		}
	default:
		if do != reads && isSystem(s.path) {
			held(systemWrite, "it is a system directory")
		}
		why := "it is outside the project"
		if strict && do == reads {
			why += ": read it with a command, which needs approval, or add its directory to permit.roots"
		}
		held(outside, why)
	}
	return found
}

// steers returns why a protected file matters.
func steers(id string) string {
	if id == selfTasks {
		return "other programs run it automatically"
	}
	return "it controls Belay or the programs that git runs"
}

// never returns why no command may ever change the path, or an empty text.
func (f *Floor) never(s *spot, do effect) string {
	if isDisk(s.path) {
		return "it writes to a disk or to memory"
	}
	if do >= rewrites {
		return f.ruinous(s, do)
	}
	return ""
}
