package declare

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/phasejson"
)

// Limit is the most bytes that a file may have. The time a YAML library takes for a
// text that means harm grows with the square of its length.
const Limit = frontmatter.Limit

// Load reads files, YAML or JSON by their names, and checks what they name: scripts
// must exist, be executable and have the line ends of this system. The files, and
// the scripts by relative paths, must be below root, links followed. Files are given
// as the working directory sees them.
//
// The error joins a [FaultError] for each mistake. The declarations without any are
// returned with it, so that a caller may choose; what is missing may be a gate.
func Load(root string, files ...string) ([]*Declaration, error) {
	r := newReading()
	base, err := realPath(root)
	if err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
	for _, file := range files {
		before := len(r.declared)
		text, err := readFile(base, file)
		if err != nil {
			r.faults = append(r.faults, err)
			continue
		}
		r.parse(file, text)
		for _, d := range r.declared[before:] {
			r.checkScripts(base, d)
		}
	}
	return r.result()
}

// Parse reads the text of a file that need not exist, and looks at nothing else. Its
// name tells YAML from JSON, and its directory is where commands would run.
func Parse(file string, text []byte) ([]*Declaration, error) {
	r := newReading()
	r.parse(file, text)
	return r.result()
}

// Decode reads a list of hooks that is part of another file, below root, as [Load]
// reads a file.
func Decode(root, file string, hooks frontmatter.Value) ([]*Declaration, error) {
	r := newReading()
	base, err := realPath(root)
	if err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
	r.begin(file)
	r.list(hooks)
	for _, d := range r.declared {
		r.checkScripts(base, d)
	}
	return r.result()
}

// readFile reads a file below a root, as far as one may be long.
func readFile(base, file string) ([]byte, error) {
	path, err := realPath(file)
	if err != nil {
		return nil, &FaultError{file, 1, "the file cannot be read: " + reason(err)}
	}
	if !below(base, path) {
		return nil, &FaultError{file, 1, fmt.Sprintf("the file is not below %s: move it there", base)}
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would wait for its other end
		return nil, &FaultError{file, 1, "it is not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &FaultError{file, 1, "the file cannot be read: " + reason(err)}
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, Limit+1))
	if err != nil {
		return nil, &FaultError{file, 1, "the file cannot be read: " + reason(err)}
	}
	return text, nil
}

// reason is what went wrong, without the path that the caller names anyway.
func reason(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

func realPath(name string) (string, error) {
	full, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(full)
}

// below reports whether a path is a directory or in it.
func below(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// reading is files on their way to declarations.
type reading struct {
	file     string
	dir      string
	secrets  []string
	declared []*Declaration
	faulty   map[*Declaration]bool
	lines    map[*Declaration]map[string]int // where the keys stand
	faults   []error
	wires    map[string]*phasejson.Phase
	envs     map[string]*cel.Env // of expressions, by phase
	places   map[string]string   // phase and id: where it stands
}

func newReading() *reading {
	return &reading{
		faulty: make(map[*Declaration]bool), lines: make(map[*Declaration]map[string]int),
		wires: make(map[string]*phasejson.Phase), envs: make(map[string]*cel.Env), places: make(map[string]string),
	}
}

func (r *reading) begin(file string) {
	r.file, r.secrets = file, nil
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		dir = filepath.Dir(file)
	}
	r.dir = dir
}

func (r *reading) faultf(line int, format string, args ...any) {
	r.faults = append(r.faults, &FaultError{r.file, max(line, 1), fmt.Sprintf(format, args...)})
}

// result are the declarations without a fault, and the faults.
func (r *reading) result() ([]*Declaration, error) {
	good := slices.DeleteFunc(slices.Clone(r.declared), func(d *Declaration) bool { return r.faulty[d] })
	return good, errors.Join(r.faults...)
}

// parse reads a file.
func (r *reading) parse(file string, text []byte) {
	r.begin(file)
	if len(text) > Limit {
		r.faultf(1, "the file has more than %d KiB: split it", Limit>>10)
		return
	}
	root, err := r.document(text)
	if err != nil {
		if e, ok := errors.AsType[*frontmatter.Error](err); ok {
			r.faultf(e.Line, "%s", readable(e.Message))
		} else {
			r.faultf(1, "%v", err)
		}
		return
	}
	if why := foreignFile(root); why != "" {
		r.faultf(1, "%s", why)
		return
	}
	var hooks *frontmatter.Value
	before := len(r.faults)
	r.mapping(root, "the file", map[string]func(frontmatter.Value){
		"secrets": func(v frontmatter.Value) { r.secrets = r.names(v, "secrets") },
		"hooks":   func(v frontmatter.Value) { hooks = &v },
	})
	if hooks == nil {
		if len(r.faults) == before {
			r.faultf(1, "there are no hooks in it: it needs the key hooks, with a list")
		}
		return
	}
	r.list(*hooks)
}

// document reads the form of a file by its name.
func (r *reading) document(text []byte) (frontmatter.Value, error) {
	if strings.EqualFold(filepath.Ext(r.file), ".json") {
		return readJSON(text)
	}
	doc, err := frontmatter.ParseYAML(string(text))
	if err != nil {
		return frontmatter.Value{}, err
	}
	if len(doc.Notes) > 0 { // what is tolerated elsewhere
		return frontmatter.Value{}, &frontmatter.Error{Line: doc.Notes[0].Line, Message: doc.Notes[0].Message}
	}
	return frontmatter.Value{Kind: frontmatter.Map, Line: 1, Map: doc.Fields}, nil
}

// foreignFile says why a file in the form of another program is not read, or nothing. There
// the moments may stand at the top, or below hooks beside other settings.
func foreignFile(root frontmatter.Value) string {
	for _, f := range root.Map {
		if f.Key == "hooks" {
			return isForeign(f.Value)
		}
	}
	return isForeign(root)
}

// readable says what to do about a message of the YAML library.
func readable(message string) string {
	switch {
	case strings.Contains(message, "mapping value is not allowed"):
		return "there is a colon where no key can be: indent the lines of one hook alike, and put quotes around a value with a colon in it"
	case strings.Contains(message, "value is not allowed"):
		return "the line is not indented like those that it belongs with: the keys of a hook begin in one column, below its id"
	case strings.Contains(message, "unexpected key name"):
		return "it is not key: value: is a colon missing here, or is the next line indented too far?"
	case strings.Contains(message, "sequence end token"):
		return "a list is not closed, or a line of it is not one of its entries: is a ] or a comma missing?"
	case strings.Contains(message, "mapping end token"):
		return "a mapping in braces is not closed: is a } or a comma missing?"
	default:
		return message
	}
}
