package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/belay-run/belay"
)

// RewindOptions are the options of [Snapshots.Rewind]. A nil *RewindOptions is valid.
type RewindOptions struct {
	// As is the id of the new session. It must be set, unless the plan keeps all messages.
	As string
	// KeepFiles rewinds the conversation only. Defaults to false.
	KeepFiles bool
	// KeepMessages rewinds the files only: the session continues with all its messages.
	// Defaults to false.
	KeepMessages bool
	// Overwrite also changes files that somebody else has changed. Defaults to false: these
	// files are left as they are.
	Overwrite bool
}

// Rewind restores the files of a plan and returns the session that continues from there. It
// is a new session that begins with the messages that stay, see [belay.Session.Fork]. The
// old session does not change. If all messages stay, it is the old session.
//
// A rewind can be undone: the replaced contents are kept with the old session, and a rewind
// of the old session to its last message brings them back.
//
// An error about files does not stop the rewind of other files. The session is then returned
// together with the error.
func (s *Snapshots) Rewind(ctx context.Context, agent *belay.Agent, plan *Rewind, opts *RewindOptions) (*belay.Session, error) {
	var o RewindOptions
	if opts != nil {
		o = *opts
	}
	session := agent.Session(plan.Session)
	if plan.At < plan.Last && !o.KeepMessages {
		if o.As == "" {
			return nil, errors.New("rewind: set RewindOptions.As, the id of the new session")
		}
		var err error
		if session, err = s.branch(ctx, agent, plan, o.As); err != nil {
			return nil, err
		}
	}
	if o.KeepFiles {
		return session, nil
	}
	return session, s.Restore(plan, o.Overwrite)
}

// branch makes the new session of a rewind, with the snapshots for its messages.
func (s *Snapshots) branch(ctx context.Context, agent *belay.Agent, plan *Rewind, as string) (*belay.Session, error) {
	if plan.At == 0 {
		return agent.Session(as), nil
	}
	session, err := agent.Session(plan.Session).Fork(ctx, as, plan.At)
	if err != nil {
		return nil, err
	}
	order, err := readPositions(plan.Session, agent.Session(plan.Session).Messages(ctx))
	if err == nil {
		err = s.copyRecords(order, plan, as)
	}
	if err != nil { // the new session works without its snapshots
		s.opts.Failed(fmt.Errorf("copy the snapshots of session %q: %w", plan.Session, err))
	}
	return session, nil
}

// copyRecords copies the records until a message to a new session.
func (s *Snapshots) copyRecords(order *positions, plan *Rewind, as string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	records, err := s.records(plan.Session)
	if err != nil {
		return err
	}
	for _, r := range records {
		at := order.of(r)
		if at > plan.At {
			continue
		}
		from := r.Session
		moved := *r
		moved.Session, moved.Seq = as, at
		for _, f := range r.Files {
			if f.Before.Hash == "" || f.Before.Lost != "" {
				continue
			}
			data, err := s.content(from, f.Before.Hash)
			if err == nil {
				err = s.keep(as, f.Before.Hash, data)
			}
			if err != nil {
				return err
			}
		}
		if err := s.append(as, &moved); err != nil {
			return err
		}
	}
	return nil
}

// Restore changes the files of a plan, and leaves the messages as they are. See
// [Snapshots.Rewind] for its rules.
func (s *Snapshots) Restore(plan *Rewind, overwrite bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := &snapshotRecord{ID: "rewind." + hashOf([]byte(time.Now().String()))[:8], Session: plan.Session, Tool: "rewind", Time: time.Now(), Seq: plan.Last + 1}
	var problems []error
	for i := range plan.dirs { // directories that were removed
		if d := &plan.dirs[i]; d.target.Kind == kindDir {
			err := d.makeDir()
			problems = append(problems, err)
			done.addDir(d, err == nil)
		}
	}
	for i := range plan.Files {
		f := &plan.Files[i]
		if f.Lost != "" || f.Conflict != "" && !overwrite {
			continue
		}
		before, err := s.restore(plan.Session, f)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		done.Files = append(done.Files, fileChange{Root: f.step.root, Path: f.step.path, Name: f.Name, Before: before, After: f.step.target})
	}
	slices.SortStableFunc(plan.dirs, deepestFirst)
	for i := range plan.dirs {
		if d := &plan.dirs[i]; d.target.Kind == kindNone {
			done.addDir(d, d.removeDir())
		}
	}
	if len(done.Files) > 0 {
		problems = append(problems, s.append(plan.Session, done))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("rewind the files of session %q: %w", plan.Session, err)
	}
	return nil
}

// restore changes one file. It returns what was there before, whose content it has kept.
func (s *Snapshots) restore(session string, f *RewindFile) (before fileState, err error) {
	step := &f.step
	p, closeRoot, err := openPlace(step.root)
	if err != nil {
		return fileState{}, err
	}
	defer closeRoot()
	now, data, err := p.look(step.path, s.opts.File)
	if err != nil {
		return fileState{}, err
	}
	if !now.equal(step.current) {
		return fileState{}, errChangedMeanwhile
	}
	if now.Hash != "" {
		if err := s.keep(session, now.Hash, data); err != nil {
			return fileState{}, err
		}
	}
	switch step.target.Kind {
	case kindNone:
		err = p.root.Remove(step.path)
	case kindLink:
		if err = p.root.MkdirAll(path.Dir(step.path), 0o777); err == nil && now.Kind != kindNone {
			err = p.root.Remove(step.path)
		}
		if err == nil {
			err = p.root.Symlink(step.target.Target, step.path)
		}
	default:
		err = s.restoreFile(p, step, now)
	}
	s.note(p, step.path, step.target)
	return now, err
}

// restoreFile writes the kept content of a file.
func (s *Snapshots) restoreFile(p *place, step *rewindStep, now fileState) error {
	at := spot{p, step.path, step.path}
	if !now.same(step.target) {
		content, err := s.content(step.session, step.target.Hash)
		if err != nil {
			return err
		}
		var old *current
		switch now.Kind {
		case kindNone:
		case kindFile:
			if old, err = at.load(); err != nil {
				return err
			}
		default:
			if err := p.root.Remove(step.path); err != nil {
				return err //nolint:wrapcheck // the caller adds context
			}
		}
		if _, err := at.replace(old, content); err != nil {
			return err
		}
	}
	if step.target.Mode == 0 {
		return nil
	}
	return p.root.Chmod(step.path, step.target.Mode) //nolint:wrapcheck // the caller adds context
}

// makeDir makes a directory that a command has removed.
func (d *rewindStep) makeDir() error {
	p, closeRoot, err := openPlace(d.root)
	if err != nil {
		return err
	}
	defer closeRoot()
	mode := d.target.Mode
	if mode == 0 {
		mode = 0o777
	}
	if err := p.root.MkdirAll(d.path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err //nolint:wrapcheck // the caller adds context
	}
	return nil
}

// removeDir removes a directory that a tool has made, if it is empty. It
// reports whether it did.
func (d *rewindStep) removeDir() (removed bool) {
	p, closeRoot, err := openPlace(d.root)
	if err != nil {
		return false
	}
	defer closeRoot()
	return p.root.Remove(d.path) == nil // it fails if the directory is not empty
}

// addDir adds the change of a directory to a record, if it was made.
func (r *snapshotRecord) addDir(d *rewindStep, made bool) {
	if made {
		r.Files = append(r.Files, fileChange{Root: d.root, Path: d.path, Before: d.current, After: d.target})
	}
}
