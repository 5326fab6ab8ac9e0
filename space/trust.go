package space

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/wholefile"
)

// These are the grants besides the capabilities of hooks.
const (
	// GrantWebhook allows webhooks whose URLs are on the operator's allowlist.
	GrantWebhook = "webhook"
	// GrantNetwork allows confined commands to use the network. It also allows MCP servers
	// with a URL.
	GrantNetwork = "network"
)

// GrantNames returns the names of all grants, in order.
func GrantNames() []string {
	all := hook.DefaultGrants(hook.Origin{Kind: hook.OriginHost}) &^ hook.DefaultGrants(hook.Origin{Kind: hook.OriginSpace})
	return append(all.Names(), GrantWebhook, GrantNetwork)
}

// CheckGrants returns an error if a name is not a grant.
func CheckGrants(names []string) error {
	var problems []error
	for _, name := range names {
		if !slices.Contains(GrantNames(), name) {
			problems = append(problems, fmt.Errorf("unknown grant %q%s: valid grants are %s", name, near.Hint(name, GrantNames()), strings.Join(GrantNames(), ", ")))
		}
	}
	return errors.Join(problems...)
}

// Trust records which directories a person has checked and trusts. A record applies only to
// the files as they were then. Make one with [OpenTrust].
type Trust struct {
	dir string

	mu    sync.Mutex
	known map[string]knownRecord // records that were read, by file
}

// knownRecord is a record in memory. The stamp shows whether its file has changed.
type knownRecord struct {
	stamp  stamp
	record *Record
}

// OpenTrust opens the trust records in a directory, which need not exist. Only the operator
// should be able to write to this directory.
func OpenTrust(dir string) *Trust { return &Trust{dir: dir, known: make(map[string]knownRecord)} }

// Record describes a trusted directory.
type Record struct {
	// Dir is the path of the trusted directory.
	Dir string `json:"dir"`
	// Origin is the kind that the directory was trusted as. If it was trusted as a project,
	// it is not trusted as a space.
	Origin hook.OriginKind `json:"origin"`
	// Space is the id of the space, or empty.
	Space string `json:"space,omitempty"`
	// Hash is a hash of the directory's files.
	Hash string `json:"hash"`
	// Grants are the additional permissions of the directory, besides running programs.
	Grants []string `json:"grants,omitempty"`
	// By and At say who trusted the directory, and when.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
	// Gates are the directory's gates at that time, see [Space.Gates].
	Gates []string `json:"gates,omitempty"`
	// Files are the directory's files at that time.
	Files []FileRecord `json:"files"`
}

// FileRecord is a file as it was trusted.
type FileRecord struct {
	Name string `json:"name"`
	Sum  string `json:"sum"`
	// Text is empty if the file is not text or is too long.
	Text string `json:"text,omitempty"`
}

func (t *Trust) file(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(t.dir, hex.EncodeToString(sum[:12])+".json")
}

// Lookup returns the record of a directory, or nil if there is none.
func (t *Trust) Lookup(dir string) (*Record, error) {
	file := t.file(dir)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	now := stampOf(info)
	t.mu.Lock()
	defer t.mu.Unlock()
	// A changed record is always a new file, so an equal stamp means an equal record.
	if k, ok := t.known[file]; ok && now.known && k.stamp == now {
		return k.record, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	r := new(Record)
	if err := json.Unmarshal(text, r); err != nil || r.Dir != dir {
		return nil, fmt.Errorf("trust: the record %s is damaged: remove it, and trust %s again", file, dir)
	}
	t.known[file] = knownRecord{now, r}
	return r, nil
}

// Records returns all records, ordered by directory.
func (t *Trust) Records() ([]*Record, error) {
	files, err := filepath.Glob(filepath.Join(t.dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	var all []*Record
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("trust: %w", err)
		}
		r := new(Record)
		if err := json.Unmarshal(text, r); err != nil {
			return nil, fmt.Errorf("trust: the record %s is damaged: remove it", file)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Record) int { return strings.Compare(a.Dir, b.Dir) })
	return all, nil
}

// Add records that a person trusts a loaded directory and gives it grants. It replaces an
// earlier record.
func (t *Trust) Add(s *Space, by string, grants ...string) (*Record, error) {
	if s.faults != nil {
		return nil, fmt.Errorf("trust: cannot trust a directory with mistakes: correct them first: %w", s.faults)
	}
	if err := CheckGrants(grants); err != nil {
		return nil, err
	}
	cover := s.coverage()
	r := &Record{Dir: s.Dir, Origin: s.Origin.Kind, Space: s.Manifest.ID, Hash: s.Hash, Gates: s.Gates(), Grants: slices.Compact(slices.Sorted(slices.Values(grants))), By: by, At: time.Now().UTC().Truncate(time.Second)}
	for _, name := range slices.Sorted(maps.Keys(s.read)) {
		r.Files = append(r.Files, FileRecord{Name: name, Sum: s.read[name].sum, Text: cover.textOf(name)})
	}
	// The texts were read later than the hash. If the files have changed in between, Add
	// fails.
	if now, err := readContents(cover, nil); err != nil || now.hash() != s.Hash {
		return nil, fmt.Errorf("trust: the files of %s changed since they were loaded: check them, then trust them again", s.Dir)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	if err := wholefile.Write(t.file(s.Dir), append(text, '\n')); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	return r, nil
}

// Remove revokes trust in a directory. It reports whether there was a record.
func (t *Trust) Remove(dir string) (bool, error) {
	err := os.Remove(t.file(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("trust: %w", err)
	}
	return true, nil
}

// holds reports whether the record is for the same kind of origin and the same space id.
func (r *Record) holds(s *Space) bool {
	return r != nil && r.Origin == s.Origin.Kind && r.Space == s.Manifest.ID
}

// lost returns the gates of the record that are no longer gates of the directory.
func (r *Record) lost(s *Space) []string {
	return missing(r.Gates, s.Gates())
}

// missing returns the elements of want that are not in have.
func missing(want, have []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(one string) bool { return slices.Contains(have, one) })
}

// Change is a difference between the files of a directory and its trust record.
type Change struct {
	// Name is the path of the file.
	Name string
	// Before and After are the texts of the file. A new or removed file has only one of
	// them.
	Before, After string
	// New means that the file was added. Gone means that it was removed. Opaque means that
	// its texts cannot be shown.
	New, Gone, Opaque bool
}

// Changes returns the differences from a record. Without a record, all files are new.
func (s *Space) Changes(r *Record) []Change {
	before := make(map[string]FileRecord)
	if r.holds(s) {
		for _, f := range r.Files {
			before[f.Name] = f
		}
	}
	var all []Change
	cover := s.coverage()
	for _, name := range slices.Sorted(maps.Keys(s.read)) {
		old, known := before[name]
		delete(before, name)
		if known && old.Sum == s.read[name].sum {
			continue
		}
		c := Change{Name: name, Before: old.Text, After: cover.textOf(name), New: !known}
		c.Opaque = c.After == "" || known && old.Text == ""
		all = append(all, c)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		all = append(all, Change{Name: name, Before: before[name].Text, Gone: true, Opaque: before[name].Text == ""})
	}
	return all
}
