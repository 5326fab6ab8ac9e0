package toolbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/spill"
)

// snapshotRecord is a line of a session's log: what one call changed. The log of a session
// is the file "log" in its directory, beside the kept contents. Their names are hashes.
type snapshotRecord struct {
	ID string `json:"id,omitempty"`
	// Void is the id of an earlier record whose change was not made.
	Void string `json:"void,omitempty"`
	// Forgotten means that this record and all earlier ones were removed to save space.
	Forgotten bool `json:"forgotten,omitempty"`

	Session string    `json:"session,omitempty"`
	Turn    string    `json:"turn,omitempty"`
	Step    int       `json:"step,omitempty"`
	Call    string    `json:"call,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	// Seq is the number of the response that made the call, if it is known. Otherwise
	// Turn and Step lead to the response.
	Seq   int64        `json:"seq,omitempty"`
	Files []fileChange `json:"files,omitempty"`
}

// fileChange is the change of one file, link or directory.
type fileChange struct {
	Root   string    `json:"root"` // the absolute path of the place
	Path   string    `json:"path"` // relative to Root
	Name   string    `json:"name,omitempty"`
	Before fileState `json:"before"`
	After  fileState `json:"after"`
}

// logName is the name of the log in the directory of a session.
const logName = "log"

// append adds a record to the log of a session.
func (s *Snapshots) append(session string, r *snapshotRecord) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record a change for rewinding: %w", err)
	}
	dir, err := s.sessionDir(session)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("record a change for rewinding: %w", err)
	}
	_, err = log.Write(append(line, '\n'))
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("record a change for rewinding: %w", err)
	}
	if r.Void == "" {
		return s.shrink(dir)
	}
	return nil
}

// readLog reads the log in a directory. It ignores a line that is not complete, because
// the process that wrote it was killed.
func readLog(dir string) ([]*snapshotRecord, error) {
	data, err := os.ReadFile(filepath.Join(dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the snapshots: %w", err)
	}
	var all []*snapshotRecord
	void := make(map[string]bool)
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		var r snapshotRecord
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		if r.Void != "" {
			void[r.Void] = true
			continue
		}
		all = append(all, &r)
	}
	return slices.DeleteFunc(all, func(r *snapshotRecord) bool { return void[r.ID] }), nil
}

// records reads the logs of a session and of its subagents, oldest record first.
func (s *Snapshots) records(session string) ([]*snapshotRecord, error) {
	var all []*snapshotRecord
	top := filepath.Join(s.dir, spill.Directory(session))
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		found, err := readLog(name)
		all = append(all, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the snapshots of session %q: %w", session, err)
	}
	slices.SortStableFunc(all, func(a, b *snapshotRecord) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// shrink forgets the oldest records of a session if its contents need too much space.
func (s *Snapshots) shrink(dir string) error {
	sizes, total, err := contents(dir)
	if err != nil || total <= s.opts.Session {
		return err
	}
	records, err := readLog(dir)
	if err != nil {
		return err
	}
	used := make(map[string]int)
	for _, r := range records {
		for _, f := range r.Files {
			used[f.Before.Hash]++
		}
	}
	for hash, bytes := range sizes { // left behind by a process that was killed
		if used[hash] == 0 {
			total -= bytes
		}
	}
	cut := 0
	for ; cut < len(records)-1 && total > s.opts.Session/2; cut++ {
		for _, f := range records[cut].Files {
			if used[f.Before.Hash]--; used[f.Before.Hash] == 0 {
				total -= sizes[f.Before.Hash]
			}
		}
	}
	if cut > 0 {
		last := *records[cut-1]
		last.Forgotten, last.Files = true, nil
		records = append([]*snapshotRecord{&last}, records[cut:]...)
	}
	var log bytes.Buffer
	for _, r := range records {
		if err := json.NewEncoder(&log).Encode(r); err != nil {
			return fmt.Errorf("forget old snapshots: %w", err)
		}
	}
	if err := writeWhole(filepath.Join(dir, logName), log.Bytes()); err != nil {
		return fmt.Errorf("forget old snapshots: %w", err)
	}
	for hash := range sizes {
		if used[hash] == 0 {
			_ = os.Remove(filepath.Join(dir, hash)) // it is removed the next time
		}
	}
	return nil
}

// contents returns the sizes of the kept contents in the directory of a session.
func contents(dir string) (sizes map[string]int64, total int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("read the snapshots: %w", err)
	}
	sizes = make(map[string]int64)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || e.Name() == logName {
			continue
		}
		sizes[e.Name()] = info.Size()
		total += info.Size()
	}
	return sizes, total, nil
}

// stagingPrefix begins the name of a directory for contents that a command may change.
const stagingPrefix = "staging-"

// oldStaging is the age at which a directory that a killed process has left is removed.
const oldStaging = 7 * 24 * time.Hour

// forgetOld removes the sessions that are over the limits, and what killed processes have
// left. It runs once for each process.
func (s *Snapshots) forgetOld() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // the directory does not exist yet
	}
	type kept struct {
		dir     string
		changed time.Time
		bytes   int64
	}
	var all []kept
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() {
			continue
		}
		dir := filepath.Join(s.dir, e.Name())
		if strings.HasPrefix(e.Name(), stagingPrefix) {
			if time.Since(info.ModTime()) > oldStaging {
				_ = os.RemoveAll(dir) // it is removed the next time
			}
			continue
		}
		k := kept{dir: dir, changed: info.ModTime()}
		_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what cannot be read is not counted
			}
			if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
				k.bytes += info.Size()
				if info.ModTime().After(k.changed) {
					k.changed = info.ModTime()
				}
			}
			return nil
		})
		total += k.bytes
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b kept) int { return a.changed.Compare(b.changed) })
	for len(all) > 0 && (len(all) >= s.opts.Sessions || total > s.opts.Total) {
		if err := os.RemoveAll(all[0].dir); err != nil {
			s.opts.Failed(fmt.Errorf("forget old snapshots: %w", err))
		}
		total -= all[0].bytes
		all = all[1:]
	}
}
