package declare

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// firstWord matches a path at the beginning of a shell command, if the shell does not
// expand anything in the path.
var firstWord = lazyregexp.New(`^\s*([A-Za-z0-9._+@%:,/-]+)(\s|;|$)`)

// checkScripts checks the files that a command names. They must be below base. It does not
// check absolute paths, or names without a slash, which are looked up in PATH. Mistakes in
// these names show only when the hook runs.
func (r *reading) checkScripts(base string, d *Declaration) {
	if len(d.Argv) == 0 || d.Dialect != nil { // commands of other agents run in the project
		return
	}
	before := len(r.faults)
	line := d.Line
	for _, key := range runKeys {
		if at, ok := r.lines[d][key]; ok {
			line = at
		}
	}
	words, inShell := d.Argv, len(d.Argv) == 3 && d.Kind == hook.HandlerCommand && r.lines[d]["run"] > 0
	if inShell {
		words = nil
		if m := firstWord.FindStringSubmatch(d.Argv[2]); m != nil {
			words = m[1:2]
		}
	}
	for i, word := range words {
		if !isScript(word, i == 0) {
			continue
		}
		if name, ok := r.checkScript(base, d.Dir, word, i == 0, line); ok {
			d.Scripts = append(d.Scripts, name)
		}
	}
	r.faulty[d] = r.faulty[d] || len(r.faults) > before
}

// isScript reports whether a word names a file relative to the hook file. A program is
// such a file if it has a slash. An argument is one if it begins with ./ or ../.
func isScript(word string, program bool) bool {
	slashed := filepath.ToSlash(word)
	switch {
	case filepath.IsAbs(word) || strings.HasPrefix(slashed, "/"):
		return false
	case strings.HasPrefix(slashed, "./") || strings.HasPrefix(slashed, "../"):
		return true
	default:
		return program && strings.Contains(slashed, "/")
	}
}

func (r *reading) checkScript(base, dir, word string, program bool, line int) (string, bool) {
	name, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(word)))
	if err != nil {
		r.faultf(line, "%s cannot be found: %s; paths are relative to the directory of this file", word, reason(err))
		return "", false
	}
	if !below(base, name) {
		r.faultf(line, "%s is outside of %s: a hook can only run files from the directory of its file or below", word, base)
		return "", false
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		r.faultf(line, "%s cannot be read: %s", word, reason(err))
		return "", false
	case program && !info.Mode().IsRegular():
		r.faultf(line, "%s is not a file: name a program", word)
		return "", false
	case program && !executable(info.Mode()):
		r.faultf(line, "%s is not executable: run chmod +x %s", word, word)
		return "", false
	case !info.Mode().IsRegular():
		return "", false
	}
	if crlf(name) {
		r.faultf(line, "%s has Windows line ends, so its interpreter is not found: save it with LF line ends", word)
		return "", false
	}
	return name, true
}

// crlf reports whether a script has wrong line ends: a #! line that ends in a carriage
// return, or any CRLF in a shell script.
func crlf(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false // the file may be executable but not readable
	}
	defer func() { _ = f.Close() }() // only read, so an error does not matter
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return false
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(first, []byte("\r")) {
		return true
	}
	ext := filepath.Ext(name)
	return (ext == ".sh" || ext == ".bash") && bytes.Contains(text, []byte("\r\n"))
}
