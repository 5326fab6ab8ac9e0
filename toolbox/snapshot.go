package toolbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/spill"
)

// Snapshots keep files as they were before tools changed them, so that a session can be
// rewound to an earlier message together with the files: see [Snapshots.Plan]. The zero
// value is not valid: use [NewSnapshots].
//
// What is covered:
//
//   - write and edit: every change, also in [Options].Extra.
//   - shell: files, symbolic links and directories below the project that a command
//     creates, changes or deletes while it runs in the foreground. Not covered are .git,
//     files that .gitignore excludes, and changes after the command has ended. In a
//     project with more than [SnapshotOptions].Files files, or with more than
//     [SnapshotOptions].Bytes bytes in them, only the files that [ShellRun].Changes names
//     are covered.
//
// Of a file, the content and the permissions are kept, but not its owner, its other names
// (hard links) and its extended attributes. Changes of background commands, of other tools
// and outside of the directories of the file tools are not covered. While a command runs,
// changes by other programs count as changes by the command.
type Snapshots struct {
	dir  string
	opts SnapshotOptions
	// exclude are the paths that are never kept, with and without resolved links.
	exclude []string

	mu      sync.Mutex // guards the fields below, and the logs of this process
	seen    map[string]*seenProject
	staging string // a directory for contents that a command may change; "" before the first command
	staged  int64  // bytes in staging
	// generation changes when the scans begin again.
	generation int
	tidy       sync.Once
}

// SnapshotOptions are the options of [NewSnapshots]. A nil *SnapshotOptions is valid.
type SnapshotOptions struct {
	// NoCommands leaves out what shell commands change. Defaults to false.
	NoCommands bool
	// Exclude are absolute paths of files and directories that are never kept, such as
	// the file of the store and its directory. A name that continues with a hyphen counts
	// too, as in sessions.db-wal. The directory of the snapshots is always excluded.
	Exclude []string
	// File is the size of the largest file that is kept, in bytes. Defaults to 8 MiB.
	File int64
	// Files and Bytes limit the projects whose files are compared before and after each
	// command. Default to 10,000 files and 64 MiB.
	Files int
	Bytes int64
	// Session limits the kept bytes of a session. Over the limit, the oldest changes are
	// forgotten. Defaults to 256 MiB.
	Session int64
	// Sessions limits the sessions, and Total the kept bytes of all. Over the limit, the
	// sessions that were not changed for the longest time are forgotten. Default to 200
	// sessions and 2 GiB.
	Sessions int
	Total    int64
	// Failed is called if something could not be kept. The change is then made without a
	// snapshot. Defaults to doing nothing.
	Failed func(error)
}

// NewSnapshots returns the snapshots in a directory. The directory is created when it is
// needed. It must be outside of the project, and tools must not be able to change it. At
// most one process should use a session at a time; stores ensure this.
func NewSnapshots(dir string, opts *SnapshotOptions) *Snapshots {
	s := &Snapshots{dir: dir, seen: make(map[string]*seenProject)}
	if opts != nil {
		s.opts = *opts
	}
	for _, name := range append([]string{dir}, s.opts.Exclude...) {
		s.exclude = append(s.exclude, name)
		if direct, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
			s.exclude = append(s.exclude, filepath.Join(direct, filepath.Base(name)))
		}
	}
	o := &s.opts
	o.File, o.Files, o.Bytes = min(cmp.Or(o.File, 8<<20), maxWhole), cmp.Or(o.Files, 10_000), cmp.Or(o.Bytes, 64<<20)
	o.Session, o.Sessions, o.Total = cmp.Or(o.Session, 256<<20), cmp.Or(o.Sessions, 200), cmp.Or(o.Total, 2<<30)
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	return s
}

// Delete removes the snapshots of a session and of its subagents. It returns nil if there
// are none.
func (s *Snapshots) Delete(session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := spill.Remove(s.dir, session); err != nil {
		return fmt.Errorf("remove the snapshots of session %q: %w", session, err)
	}
	return nil
}

// Close removes temporary files. The snapshots stay.
func (s *Snapshots) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unstage()
}

// The kinds of a fileState.
const (
	kindNone = "none"
	kindFile = "file"
	kindLink = "link"
	kindDir  = "dir"
)

// fileState is what is at a path: nothing, a file, a symbolic link or a directory.
type fileState struct {
	Kind string      `json:"kind"`
	Mode fs.FileMode `json:"mode,omitempty"` // permissions of a file; 0 if unknown
	// Hash is the SHA-256 of a file's content, in hex. It is empty if the file is larger
	// than SnapshotOptions.File; Size and Time then stand for the content.
	Hash   string    `json:"hash,omitempty"`
	Size   int64     `json:"size,omitempty"`
	Time   time.Time `json:"time,omitzero"`
	Target string    `json:"target,omitempty"` // of a link
	Lost   string    `json:"lost,omitempty"`   // why the content of the file was not kept
}

// same reports whether two states have the same content. It ignores permissions.
func (a fileState) same(b fileState) bool {
	return a.Kind == b.Kind && a.Hash == b.Hash && a.Target == b.Target && (a.Kind != kindFile || a.Hash != "" || a.Size == b.Size && a.Time.Equal(b.Time))
}

// equal is like same, but also compares the permissions if both are known.
func (a fileState) equal(b fileState) bool {
	return a.same(b) && (a.Mode == b.Mode || a.Mode == 0 || b.Mode == 0)
}

// look returns what is at a path of a place. data is the content of a file that is not
// larger than limit.
func (p *place) look(rel string, limit int64) (state fileState, data []byte, err error) {
	info, err := p.root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) || unusable(err) {
		return fileState{Kind: kindNone}, nil, nil
	}
	if err != nil {
		return fileState{}, nil, fmt.Errorf("look at %s: %w", rel, err)
	}
	return p.lookAt(rel, info, limit)
}

func (p *place) lookAt(rel string, info fs.FileInfo, limit int64) (state fileState, data []byte, err error) {
	switch {
	case info.IsDir():
		return fileState{Kind: kindDir, Mode: info.Mode().Perm()}, nil, nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := p.root.Readlink(rel)
		if err != nil {
			return fileState{}, nil, fmt.Errorf("read the link %s: %w", rel, err)
		}
		return fileState{Kind: kindLink, Target: target}, nil, nil
	case !info.Mode().IsRegular():
		return fileState{Kind: kindOf(info.Mode())}, nil, nil
	}
	state = fileState{Kind: kindFile, Mode: info.Mode().Perm(), Size: info.Size()}
	if info.Size() > limit {
		state.Time, state.Lost = info.ModTime(), "it is larger than "+size(limit)
		return state, nil, nil
	}
	read, err := spot{p, rel, rel}.load()
	if err != nil {
		return fileState{}, nil, err
	}
	state.Size, state.Hash = int64(len(read.data)), hashOf(read.data)
	return state, read.data, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// begin records a change that write or edit is about to make. The caller calls undo if it
// does not make the change. A nil *Snapshots records nothing.
func (s *Snapshots) begin(call *belay.Invocation, at spot, old *current, content []byte) (undo func()) {
	undo = func() {}
	if s == nil {
		return undo
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after := fileState{Kind: kindFile, Hash: hashOf(content), Size: int64(len(content))}
	before := fileState{Kind: kindNone}
	r := newRecord(call)
	if old == nil {
		for dir := path.Dir(at.rel); dir != "."; dir = path.Dir(dir) { // write creates these
			if state, _, err := at.place.look(dir, 0); err != nil || state.Kind != kindNone {
				break
			}
			r.Files = append(r.Files, fileChange{Root: at.place.also, Path: dir, Before: before, After: fileState{Kind: kindDir}})
		}
	} else {
		before = fileState{Kind: kindFile, Mode: old.info.Mode().Perm(), Hash: hashOf(old.data), Size: int64(len(old.data))}
		if before.Size > s.opts.File {
			before.Lost = "it is larger than " + size(s.opts.File)
		} else if err := s.keep(call.Session, before.Hash, old.data); err != nil {
			s.opts.Failed(err)
			return undo
		}
		after.Mode = before.Mode
	}
	r.Files = append(r.Files, fileChange{Root: at.place.also, Path: at.rel, Name: at.shown, Before: before, After: after})
	if err := s.append(call.Session, r); err != nil {
		s.opts.Failed(err)
		return undo
	}
	s.note(at.place, at.rel, after)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.note(at.place, at.rel, before)
		if err := s.append(call.Session, &snapshotRecord{Void: r.ID}); err != nil {
			s.opts.Failed(err)
		}
	}
}

// keep stores a content of a session, unless it is there already.
func (s *Snapshots) keep(session, hash string, data []byte) error {
	dir, err := s.sessionDir(session)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, hash)
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	if err := writeWhole(name, data); err != nil {
		return fmt.Errorf("keep a file for rewinding: %w", err)
	}
	return nil
}

// sessionDir creates the directory of a session.
func (s *Snapshots) sessionDir(session string) (string, error) {
	s.tidy.Do(s.forgetOld)
	dir := filepath.Join(s.dir, spill.Directory(session))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep files for rewinding: %w", err)
	}
	return dir, nil
}

// content returns a content that a session has kept.
func (s *Snapshots) content(session, hash string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, spill.Directory(session), hash))
	if err != nil {
		return nil, fmt.Errorf("read a kept file: %w", err)
	}
	if hashOf(data) != hash {
		return nil, errors.New("read a kept file: it is damaged")
	}
	return data, nil
}

// writeWhole writes a file that is there completely or not at all.
func writeWhole(name string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // only the first error matters
	}
	return err
}

// newRecord returns a record of a call, without changes.
func newRecord(call *belay.Invocation) *snapshotRecord {
	return &snapshotRecord{
		ID: call.ID + "." + hashOf([]byte(call.Turn + time.Now().String()))[:8], Session: call.Session, Turn: call.Turn, Step: call.Step, Call: call.ID, Tool: call.Tool, Time: time.Now(),
	}
}

// ForgetSession implements [belay.ForgetExtension]: it removes the snapshots of a session.
func (e *Extension) ForgetSession(_ context.Context, session string) error {
	if e.snapshots == nil {
		return nil
	}
	return e.snapshots.Delete(session)
}
