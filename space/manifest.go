package space

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/near"
)

// Manifest describes a space.
type Manifest struct {
	// ID has 1 to 64 lower-case letters, digits and single hyphens. The ids of the space's
	// hooks begin with it.
	ID string `json:"id"`
	// Name is the name that people see. Defaults to the id.
	Name string `json:"name,omitempty"`
	// Version and Description are shown to people.
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
}

const manifestFile = "manifest.json"

// mostManifest is the maximum size of a manifest in bytes.
const mostManifest = 64 << 10

// mostText is the maximum length of a field in characters.
const mostText = 1024

var idForm = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// reserved are ids that could be confused with origins.
var reserved = []string{"host", "operator", "project", "space", "belay"}

func readManifest(dir string, p *problems) Manifest {
	var m Manifest
	file := filepath.Join(dir, manifestFile)
	text, err := readAtMost(file, mostManifest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.addf(file, 0, `this space has no manifest: add a %s with at least {"id": "…"}`, manifestFile)
		return m
	case err != nil:
		p.addf(file, 0, "%s", reason(err))
		return m
	}
	m.decode(file, text, p)
	return m
}

// decode decodes a manifest strictly: it rejects unknown and repeated fields.
func (m *Manifest) decode(file string, text []byte, p *problems) {
	fields := map[string]*string{"id": &m.ID, "name": &m.Name, "version": &m.Version, "description": &m.Description}
	names := []string{"id", "name", "version", "description"}
	before := len(p.list)
	if !utf8.Valid(text) {
		p.addf(file, 1, "the file is not UTF-8")
		return
	}
	d := json.NewDecoder(bytes.NewReader(text))
	line := func() int { return 1 + bytes.Count(text[:min(int(d.InputOffset()), len(text))], []byte("\n")) }
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		p.addf(file, line(), "the file must contain a JSON object")
		return
	}
	seen := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			p.addf(file, line(), "the file is not valid JSON: %v", err)
			return
		}
		at := line()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			p.addf(file, line(), "the file is not valid JSON: %v", err)
			return
		}
		into := fields[key]
		switch {
		case into == nil:
			p.addf(file, at, "unknown key %q%s: a manifest has %s", key, near.Hint(key, names), strings.Join(names, ", "))
		case seen[key]:
			p.addf(file, at, "the key %q occurs twice: remove one", key)
		case json.Unmarshal(value, into) != nil || string(value) == "null":
			p.addf(file, at, "%q must be a string", key)
		case utf8.RuneCountInString(*into) > mostText:
			p.addf(file, at, "%q is too long: use at most %d characters", key, mostText)
		}
		seen[key] = true
	}
	if _, err := d.Token(); err != nil {
		p.addf(file, line(), "the file is not valid JSON: %v", err)
		return
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		p.addf(file, line(), "there is text after the object: remove it")
	}
	if len(p.list) > before {
		return
	}
	switch {
	case m.ID == "":
		p.addf(file, 1, `"id" is missing`)
	case !idForm.MatchString(m.ID) || len(m.ID) > 64:
		p.addf(file, 1, "id %q is invalid: use 1 to 64 lower-case letters, digits and single hyphens", m.ID)
	default:
		for _, name := range reserved {
			if m.ID == name {
				p.addf(file, 1, "id %q is reserved: choose another id", m.ID)
			}
		}
	}
}

// readAtMost reads a regular file. It fails if the file has more than most bytes.
func readAtMost(file string, most int64) ([]byte, error) {
	info, err := os.Stat(file) // before Open, because opening a pipe would block
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the file was only read
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, errors.New("the file is too long")
	}
	return text, nil
}

// reason returns the text of an error without the path. The caller adds the path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
