package toolbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/diff"
)

// Rewind says what must change in the files so that they are as they were after a message
// of a session. [Snapshots.Plan] makes it, [Snapshots.Rewind] does it.
type Rewind struct {
	Session string
	// At is the number of the last message that stays, and Last that of the last message of
	// the session.
	At, Last int64
	// Files are the files to change, in the order of their paths.
	Files []RewindFile
	// Incomplete says which changes cannot be undone because their snapshots were
	// forgotten. It is empty if there are none.
	Incomplete string

	dirs []rewindStep
}

// RewindFile is a file, or a symbolic link, that changes.
type RewindFile struct {
	// Path is the absolute path. Name is relative to the project, if the file is inside.
	Path, Name string
	// Action is "restore" or "remove". A file is removed if a tool has created it.
	Action string
	// Diff is the change in the unified format. It is empty for a file that is not text, or
	// is too large.
	Diff           string
	Added, Removed int
	// Conflict says that somebody else has changed the file. Rewind leaves the file as it
	// is, unless RewindOptions.Overwrite is set.
	Conflict string
	// Lost says why the file cannot be restored: its content was not kept.
	Lost string

	step rewindStep
}

// rewindStep is what is at a path, and what should be there.
type rewindStep struct {
	root, path      string
	session         string // has the content
	current, target fileState
}

// maxRewindDiff is the size of the largest file whose diff is shown, in bytes.
const maxRewindDiff = 1 << 20

// Plan returns what a rewind of a session to a message would change. The messages up to and
// including the number at stay; 0 stands for the time before the first message. The changes
// of subagents count too. Plan changes nothing.
//
// The error is belay.ErrNotFound if the session has no such message, and belay.ErrBusy if a
// turn of the session is running.
func (s *Snapshots) Plan(ctx context.Context, store belay.Store, session string, at int64) (*Rewind, error) {
	if err := idle(ctx, store, session); err != nil {
		return nil, err
	}
	order, err := readPositions(session, store.Read(ctx, session, 0))
	if err != nil {
		return nil, fmt.Errorf("rewind session %q: %w", session, err)
	}
	if at < 0 || at > order.last {
		return nil, fmt.Errorf("rewind session %q: %w: the session has no message %d, its last message is %d", session, belay.ErrNotFound, at, order.last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	records, err := s.records(session)
	if err != nil {
		return nil, err
	}
	plan := &Rewind{Session: session, At: at, Last: order.last}
	chains := make(map[string]*fileChain)
	var names []string
	for _, r := range records {
		if order.of(r) <= at {
			continue
		}
		if r.Forgotten {
			plan.Incomplete = fmt.Sprintf("changes until %s cannot be undone: their snapshots were removed to save space", r.Time.Format(time.DateTime))
			continue
		}
		for _, f := range r.Files {
			name := filepath.Join(f.Root, filepath.FromSlash(f.Path))
			if chains[name] == nil {
				chains[name] = &fileChain{}
				names = append(names, name)
			}
			chains[name].add(r.Session, f)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := s.planFile(plan, name, chains[name]); err != nil {
			return nil, fmt.Errorf("rewind session %q: %w", session, err)
		}
	}
	return plan, nil
}

// idle returns belay.ErrBusy if a turn of the session is running.
func idle(ctx context.Context, store belay.Store, session string) error {
	lists, ok := store.(belay.ListStore)
	if !ok {
		return nil
	}
	for info, err := range lists.Sessions(ctx, belay.SessionFilter{ID: session, Limit: 1}) {
		if err != nil {
			return fmt.Errorf("rewind session %q: %w", session, err)
		}
		if info.Held && info.State.Turn != nil && !info.State.Turn.Parked {
			return fmt.Errorf("rewind session %q: %w: wait for its end, or abort it", session, belay.ErrBusy)
		}
	}
	return nil
}

// fileChain is what tools did to a path, in order.
type fileChain struct {
	change  fileChange
	session string // has the content before the first change
	broken  bool   // somebody else has changed the file between two changes
}

func (c *fileChain) add(session string, f fileChange) {
	if c.session == "" {
		c.change, c.session = f, session
		return
	}
	switch {
	case c.change.After.same(f.Before):
	case c.change.Before.same(f.Before): // the process was killed before it made the change
	default:
		c.broken = true
	}
	c.change.After = f.After
}

// planFile adds a path to a plan.
func (s *Snapshots) planFile(plan *Rewind, name string, c *fileChain) error {
	p, closeRoot, err := openPlace(c.change.Root)
	if err != nil {
		return err
	}
	defer closeRoot()
	current, data, err := p.look(c.change.Path, s.opts.File)
	if err != nil {
		return err
	}
	step := rewindStep{root: c.change.Root, path: c.change.Path, session: c.session, current: current, target: c.change.Before}
	if current.equal(step.target) {
		return nil
	}
	if step.target.Kind == kindDir || step.target.Kind == kindNone && current.Kind == kindDir {
		if c.change.After.Kind == kindDir || current.Kind == kindNone {
			plan.dirs = append(plan.dirs, step)
		}
		return nil
	}
	f := RewindFile{Path: name, Name: c.change.Name, Action: "restore", step: step}
	if step.target.Kind == kindNone {
		f.Action = "remove"
	}
	switch {
	case step.target.Lost != "":
		f.Lost = "its content was not kept: " + step.target.Lost
	case step.target.Kind != kindNone && step.target.Kind != kindFile && step.target.Kind != kindLink:
		f.Lost = "it was a " + step.target.Kind
	}
	switch {
	case !current.same(c.change.After):
		f.Conflict = "somebody else has changed it since the last change in the session"
		if current.Kind == kindNone {
			f.Conflict = "somebody else has removed it since the last change in the session"
		}
	case c.broken:
		f.Conflict = "somebody else has changed it between two changes in the session"
	}
	var before []byte
	if step.target.Hash != "" && f.Lost == "" {
		if before, err = s.content(c.session, step.target.Hash); err != nil {
			f.Lost = err.Error()
		}
	}
	f.diff(data, before)
	plan.Files = append(plan.Files, f)
	return nil
}

// diff sets the diff of a file.
func (f *RewindFile) diff(now, then []byte) {
	if f.Lost != "" || len(now) > maxRewindDiff || len(then) > maxRewindDiff || !isText(now) || !isText(then) {
		return
	}
	from, to := inText("a/"+f.Name), inText("b/"+f.Name)
	if f.step.current.Kind == kindNone {
		from = ""
	}
	if f.step.target.Kind == kindNone {
		to = ""
	}
	f.Diff, f.Added, f.Removed = diff.Unified(from, to, string(now), string(then))
}

func isText(data []byte) bool { return utf8.Valid(data) && !bytes.ContainsRune(data, 0) }

// openPlace opens a directory that is named in a log.
func openPlace(dir string) (p *place, closeRoot func(), err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open the directory of changed files: %w", err)
	}
	return newPlace(root), func() { _ = root.Close() }, nil
}

// positions tell where a record is in a session.
type positions struct {
	session string
	last    int64
	steps   map[turnStep]int64 // the number of the response
	times   []messageTime      // in order
}

type turnStep struct {
	turn string
	step int
}

type messageTime struct {
	at  time.Time
	seq int64
}

func readPositions(session string, messages iter.Seq2[*belay.Message, error]) (*positions, error) {
	p := &positions{session: session, steps: make(map[turnStep]int64)}
	for m, err := range messages {
		if err != nil {
			return nil, err
		}
		p.last = m.Seq
		p.times = append(p.times, messageTime{m.Time, m.Seq})
		if m.Role == belay.RoleAssistant && !m.IsCompaction {
			p.steps[turnStep{m.Turn, m.Step}] = m.Seq
		}
	}
	return p, nil
}

// of returns the number of the response that made the calls of a record. For the record of
// a subagent, it is the last message of the session at that time.
func (p *positions) of(r *snapshotRecord) int64 {
	if r.Seq > 0 {
		return r.Seq
	}
	if r.Session == p.session {
		if seq, ok := p.steps[turnStep{r.Turn, r.Step}]; ok {
			return seq
		}
	}
	seq := int64(1)
	for _, m := range p.times {
		if m.at.After(r.Time) {
			break
		}
		seq = m.seq
	}
	return seq
}

// Conflicts returns the files that somebody else has changed, or that cannot be restored.
func (r *Rewind) Conflicts() []RewindFile {
	return slices.DeleteFunc(slices.Clone(r.Files), func(f RewindFile) bool { return f.Conflict == "" && f.Lost == "" })
}

// errChangedMeanwhile means that a file has changed since the plan was made.
var errChangedMeanwhile = errors.New("it has changed since the plan was made, so it was left as it is")

// deepestFirst sorts directories so that each comes before the directories above it.
func deepestFirst(a, b rewindStep) int {
	return strings.Count(b.path, "/") - strings.Count(a.path, "/")
}
