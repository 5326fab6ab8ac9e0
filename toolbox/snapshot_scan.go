package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// seenProject is what the scans of this process have seen of a project.
type seenProject struct {
	files   map[string]scanned // by path
	large   bool               // the project is over the limits, so it is not scanned
	running int                // commands that run now
}

// scanned is what a scan has seen at a path. If the stamp is the same later, the scan does
// not read the file again.
type scanned struct {
	state fileState
	stamp fileStamp
}

// fileStamp changes if a file changes.
type fileStamp struct {
	size     int64
	mode     fs.FileMode
	modified time.Time
	changed  time.Time // of the inode, where the system has it
}

// settled is how old a change must be so that a later change surely has another time.
const settled = 50 * time.Millisecond

// scanTime limits the scan after a command, whose own context may be done.
const scanTime = 30 * time.Second

// errLarge means that a project is over the limits of the options.
var errLarge = errors.New("the project is too large")

// around keeps what a command may change. The caller calls the result when the command has
// ended. A nil *Snapshots does nothing.
func (s *Snapshots) around(ctx context.Context, call *belay.Invocation, p *place, run *ShellRun) (ended func()) {
	if s == nil || p == nil || s.opts.NoCommands || run.ReadOnly {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[p.also]
	if seen == nil {
		seen = &seenProject{files: make(map[string]scanned)}
		s.seen[p.also] = seen
	}
	began := time.Now()
	below, err := s.scanBefore(ctx, p, seen, run.Changes)
	if err != nil {
		s.opts.Failed(fmt.Errorf("keep the files of the project for rewinding: %w", err))
		return func() {}
	}
	seen.running++
	generation := s.generation
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scanTime)
		defer cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		seen.running--
		if s.generation != generation || len(below) == 0 {
			return // what was there before is not known any more
		}
		if err := s.keepChanges(ctx, call, p, seen, below, began); err != nil {
			s.opts.Failed(fmt.Errorf("keep the changes of a command for rewinding: %w", err))
		}
	}
}

// scanBefore scans the project, or the named paths if the project is too large. It returns
// what it has scanned.
//
// If another command runs in the project, scanBefore does not scan: it would take the changes
// of that command for older ones. The command that ends first gets the changes of both.
func (s *Snapshots) scanBefore(ctx context.Context, p *place, seen *seenProject, named []string) (below []string, err error) {
	if !seen.large && seen.running > 0 {
		return []string{"."}, nil
	}
	if seen.running == 0 && s.staged > 2*s.opts.Bytes { // old contents fill the directory: begin again
		if err := s.unstage(); err != nil {
			return nil, err
		}
	}
	if !seen.large {
		_, err := s.scan(ctx, p, seen, []string{"."})
		if !errors.Is(err, errLarge) {
			return []string{"."}, err
		}
		seen.large = true
		if err := s.unstage(); err != nil {
			return nil, err
		}
	}
	for _, name := range named {
		if filepath.IsAbs(name) {
			rel, ok := p.inside(filepath.Clean(name))
			if !ok {
				continue
			}
			name = rel
		}
		if name = path.Clean(filepath.ToSlash(name)); name != "." && filepath.IsLocal(name) {
			below = append(below, name)
		}
	}
	_, err = s.scan(ctx, p, seen, below)
	if errors.Is(err, errLarge) { // a command names a large directory
		return nil, nil
	}
	return below, err
}

// keepChanges scans again, and records what has changed since the last scan.
func (s *Snapshots) keepChanges(ctx context.Context, call *belay.Invocation, p *place, seen *seenProject, below []string, began time.Time) error {
	changes, err := s.scan(ctx, p, seen, below)
	if err != nil {
		return err
	}
	r := newRecord(call)
	ignores := slices.ContainsFunc(changes, func(c fileChange) bool { return path.Base(c.Path) == ".gitignore" })
	for _, c := range changes {
		if c.Before.Kind == kindNone && c.older(p, began) {
			continue // an ignored file that is no longer ignored
		}
		if c.Before.Kind == kindNone && ignores && c.After.Kind != kindDir {
			c.Before = fileState{Kind: kindFile, Lost: "the command also changed what git ignores, so the file may be older"}
		}
		if c.Before.Hash != "" {
			data, err := os.ReadFile(filepath.Join(s.staging, c.Before.Hash))
			if err == nil {
				err = s.keep(call.Session, c.Before.Hash, data)
			}
			if err != nil {
				s.opts.Failed(err)
				c.Before.Lost = "it could not be kept"
			}
		}
		r.Files = append(r.Files, c)
	}
	if len(r.Files) == 0 {
		return nil
	}
	return s.append(call.Session, r)
}

// older reports whether what is at the path is older than a time.
func (c *fileChange) older(p *place, than time.Time) bool {
	info, err := p.root.Lstat(c.Path)
	return err == nil && stampOf(info).changed.Before(than.Add(-settled))
}

func stampOf(info fs.FileInfo) fileStamp {
	return fileStamp{info.Size(), info.Mode(), info.ModTime(), inodeChanged(info)}
}

// scan looks at everything below some paths, and returns the differences to the last scan.
// It stages the contents of files that are new to it.
func (s *Snapshots) scan(ctx context.Context, p *place, seen *seenProject, below []string) ([]fileChange, error) {
	x := &projectScan{s: s, p: p, seen: seen, began: time.Now(), found: make(map[string]bool)}
	w := &walker{
		place: p, visit: func(e entry) error {
			if s.excludes(p, e.rel) {
				return nil
			}
			return x.at(e.rel)
		},
		enter: func(dir string) bool { return !s.excludes(p, dir) },
	}
	for _, dir := range below {
		if dir != "." {
			if err := x.at(dir); err != nil {
				return nil, err
			}
			if seen.files[dir].state.Kind != kindDir {
				continue
			}
		}
		if err := w.walk(ctx, dir); err != nil && !unusable(err) {
			return nil, err
		}
	}
	x.forget(below)
	return x.changes, nil
}

// projectScan is a scan that is under way.
type projectScan struct {
	s       *Snapshots
	p       *place
	seen    *seenProject
	began   time.Time
	found   map[string]bool // what there is
	bytes   int64           // of the files that were found
	changes []fileChange
}

// at looks at a path.
func (x *projectScan) at(rel string) error {
	info, err := x.p.root.Lstat(rel)
	if unusable(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", rel, err)
	}
	x.found[rel] = true
	stamp := stampOf(info)
	if info.Mode().IsRegular() {
		x.bytes += min(info.Size(), x.s.opts.File)
	}
	if len(x.found) > x.s.opts.Files || x.bytes > x.s.opts.Bytes {
		return errLarge
	}
	before, known := x.seen.files[rel]
	if known && before.stamp == stamp && stamp != (fileStamp{}) {
		return nil
	}
	state, data, err := x.p.lookAt(rel, info, x.s.opts.File)
	if err != nil { // it cannot be read, or is being replaced
		delete(x.found, rel)
		return nil //nolint:nilerr // the other files count
	}
	if state.Hash != "" {
		if err := x.s.stage(state.Hash, data); err != nil {
			return err
		}
	}
	if x.began.Sub(stamp.modified) < settled || x.began.Sub(stamp.changed) < settled {
		stamp = fileStamp{} // read it again next time, because its times could be the same after a change
	}
	x.seen.files[rel] = scanned{state, stamp}
	switch {
	case !known:
		x.changed(rel, fileState{Kind: kindNone}, state)
	case !before.state.equal(state) && (state.Kind != kindDir || before.state.Kind != kindDir):
		x.changed(rel, before.state, state)
	}
	return nil
}

// forget forgets what the last scan found below the paths and this one did not.
func (x *projectScan) forget(below []string) {
	for rel, before := range x.seen.files {
		if x.found[rel] || !under(rel, below) {
			continue
		}
		delete(x.seen.files, rel)
		if _, err := x.p.root.Lstat(rel); unusable(err) { // otherwise it is ignored now
			x.changed(rel, before.state, fileState{Kind: kindNone})
		}
	}
}

func (x *projectScan) changed(rel string, before, after fileState) {
	x.changes = append(x.changes, fileChange{Root: x.p.also, Path: rel, Name: rel, Before: before, After: after})
}

// excludes reports whether a path is never kept.
func (s *Snapshots) excludes(p *place, rel string) bool {
	name := filepath.Join(p.also, filepath.FromSlash(rel))
	for _, e := range s.exclude {
		if rest, ok := strings.CutPrefix(name, e); ok && (rest == "" || rest[0] == filepath.Separator || rest[0] == '-') {
			return true
		}
	}
	return false
}

// under reports whether a path is one of some paths, or below one.
func under(rel string, paths []string) bool {
	for _, p := range paths {
		if p == "." || rel == p || strings.HasPrefix(rel, p+"/") {
			return true
		}
	}
	return false
}

// stage writes a content to the directory of this process for contents that a command may
// change.
func (s *Snapshots) stage(hash string, data []byte) error {
	if s.staging == "" {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		dir, err := os.MkdirTemp(s.dir, stagingPrefix)
		if err != nil {
			return err
		}
		s.staging = dir
	}
	name := filepath.Join(s.staging, hash)
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	s.staged += int64(len(data))
	return os.WriteFile(name, data, 0o600)
}

// unstage removes the staged contents, and forgets what the scans have seen.
func (s *Snapshots) unstage() error {
	s.generation++
	for _, seen := range s.seen {
		clear(seen.files)
	}
	if s.staging == "" {
		return nil
	}
	err := os.RemoveAll(s.staging)
	s.staging, s.staged = "", 0
	if err != nil {
		return fmt.Errorf("remove temporary snapshots: %w", err)
	}
	return nil
}

// note tells the next scan what write or edit has put at a path, so that the change does not
// count as the change of a command that runs at the same time.
func (s *Snapshots) note(p *place, rel string, state fileState) {
	seen := s.seen[p.also]
	if seen == nil {
		return
	}
	if state.Kind == kindNone {
		delete(seen.files, rel)
		return
	}
	seen.files[rel] = scanned{state: state}
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if _, known := seen.files[dir]; !known {
			seen.files[dir] = scanned{state: fileState{Kind: kindDir}}
		}
	}
}
