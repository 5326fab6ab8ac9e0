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

// Limit is the maximum size of a file in bytes. It is needed because the YAML library can
// take quadratic time for a malicious file.
const Limit = frontmatter.Limit

// Load reads files. The extension selects YAML or JSON. Relative file names are relative
// to root. Load also checks the scripts that the files name: they must exist, be
// executable and have the right line ends. The files, and scripts with relative paths,
// must be below root after links are resolved. Load does not read the tests of hooks: a mistake
// in a test does not stop a hook. See [Declaration.Tests].
//
// The error joins one [FaultError] for each mistake. Even with an error, Load returns the
// declarations without mistakes. If you use them, remember that a gate may be missing.
func Load(root string, files ...string) ([]*Declaration, error) {
	r := newReading()
	base, err := realPath(root)
	if err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
	for _, file := range files {
		if !filepath.IsAbs(file) {
			file = filepath.Join(root, file)
		}
		before := len(r.declared)
		text, err := readFile(base, file)
		if err != nil {
			r.faults = append(r.faults, err)
			continue
		}
		r.parse(file, text)
		for _, d := range r.declared[before:] {
			r.checkScripts(base, d)
			d.keepTests(base)
		}
	}
	return r.result()
}

// Parse reads text as the content of file. The file need not exist, and Parse opens no
// files. The extension of file selects YAML or JSON. Commands will
// run in the directory of file.
func Parse(file string, text []byte) ([]*Declaration, error) {
	r := newReading()
	r.parse(file, text)
	return r.result()
}

// Decode reads a list of hooks that is a part of another file below root. Otherwise it
// works like [Load].
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
		d.keepTests(base)
	}
	return r.result()
}

// readFile reads a file below base, up to one byte more than Limit.
func readFile(base, file string) ([]byte, error) {
	path, err := realPath(file)
	if err != nil {
		return nil, &FaultError{file, 1, "the file cannot be read: " + reason(err)}
	}
	if !below(base, path) {
		return nil, &FaultError{file, 1, fmt.Sprintf("the file is not below %s: move it there", base)}
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a named pipe would block
		return nil, &FaultError{file, 1, "it is not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &FaultError{file, 1, "the file cannot be read: " + reason(err)}
	}
	defer func() { _ = f.Close() }() // only read, so an error does not matter
	text, err := io.ReadAll(io.LimitReader(f, Limit+1))
	if err != nil {
		return nil, &FaultError{file, 1, "the file cannot be read: " + reason(err)}
	}
	return text, nil
}

// reason returns an error text without the path, because the caller adds the path.
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

// below reports whether name is dir or inside dir.
func below(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// reading is the state while files are read.
type reading struct {
	file     string
	dir      string
	secrets  []string
	declared []*Declaration
	faulty   map[*Declaration]bool
	lines    map[*Declaration]map[string]int // the lines of the keys of each declaration
	faults   []error
	wires    map[string]*phasejson.Phase
	envs     map[string]*cel.Env // environments of expressions, by phase
	places   map[string]string   // where each phase and id was declared
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

// result returns the declarations without faults, and all faults as an error.
func (r *reading) result() ([]*Declaration, error) {
	good := slices.DeleteFunc(slices.Clone(r.declared), func(d *Declaration) bool { return r.faulty[d] })
	return good, errors.Join(r.faults...)
}

// parse reads the declarations in the text of a file.
func (r *reading) parse(file string, text []byte) {
	r.begin(file)
	if len(text) > Limit {
		r.faultf(1, "the file has more than %d KiB: split it", Limit>>10)
		return
	}
	root, err := r.document(text)
	if err != nil {
		r.unread(err)
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
			r.faultf(1, "the file has no hooks: it needs the key hooks, with a list")
		}
		return
	}
	r.list(*hooks)
}

// unread reports why a file could not be parsed.
func (r *reading) unread(err error) {
	if e, ok := errors.AsType[*frontmatter.Error](err); ok {
		r.faultf(e.Line, "%s", readable(e.Message))
	} else {
		r.faultf(1, "%v", err)
	}
}

// document parses a file as JSON or YAML, by its extension.
func (r *reading) document(text []byte) (frontmatter.Value, error) {
	if strings.EqualFold(filepath.Ext(r.file), ".json") {
		return readJSON(text)
	}
	doc, err := frontmatter.ParseYAML(string(text))
	if err != nil {
		return frontmatter.Value{}, err
	}
	if len(doc.Notes) > 0 { // tolerated mistakes: other files accept them, hook files do not
		return frontmatter.Value{}, &frontmatter.Error{Line: doc.Notes[0].Line, Message: doc.Notes[0].Message}
	}
	return frontmatter.Value{Kind: frontmatter.Map, Line: 1, Map: doc.Fields}, nil
}

// foreignFile returns an explanation if a file has the format of another program, or "".
// Such a file has the events at the top level, or in the key hooks beside other settings.
func foreignFile(root frontmatter.Value) string {
	for _, f := range root.Map {
		if f.Key == "hooks" {
			return isForeign(f.Value)
		}
	}
	return isForeign(root)
}

// readable replaces a message of the YAML library by advice.
func readable(message string) string {
	switch {
	case strings.Contains(message, "mapping value is not allowed"):
		return "unexpected colon: indent the keys of one hook equally, and put quotes around a value with a colon in it"
	case strings.Contains(message, "value is not allowed"):
		return "wrong indentation: the keys of a hook must begin in one column, below its id"
	case strings.Contains(message, "unexpected key name"):
		return "expected key: value: is a colon missing here, or is the next line indented too far?"
	case strings.Contains(message, "sequence end token"):
		return "a list is not closed, or one of its lines is not an entry: is a ] or a comma missing?"
	case strings.Contains(message, "mapping end token"):
		return "a mapping in braces is not closed: is a } or a comma missing?"
	default:
		return message
	}
}
