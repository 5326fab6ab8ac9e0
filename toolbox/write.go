package toolbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
)

type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (f *files) writeTool() belay.Tool { //nolint:ireturn // a tool is used through the interface
	return newTool("write", "Writes a whole file of the project and creates missing directories. "+
		"An existing file must have been read before. To change a part of a file, use edit.", `{
		"type": "object", "additionalProperties": false, "required": ["path", "content"], "properties": {
			"path": {"type": "string", "description": "the file, relative to the project"},
			"content": {"type": "string", "description": "the whole content of the file"}
		}}`, belay.ToolTraits{Serial: true, NeedsAuthorizer: true}, f.doWrite)
}

func (f *files) doWrite(ctx context.Context, call *belay.Invocation, in *writeInput) (belay.Result, error) {
	at, err := f.locate(in.Path)
	if err != nil {
		return belay.Result{}, err
	}
	if at.rel == "." || strings.HasSuffix(filepath.ToSlash(in.Path), "/") {
		return belay.Result{}, failf(belay.ClassInvalid, "%q is a directory: name a file to write.", in.Path)
	}
	f.change.Lock()
	defer f.change.Unlock()
	if ctx.Err() != nil {
		return belay.Result{}, context.Cause(ctx)
	}
	old, err := at.load()
	content := []byte(in.Content)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return belay.Result{}, f.explain(at, err)
	case string(old.data) == in.Content:
		f.read.saw(call.Session, at, old.sum())
		return answer(fmt.Sprintf("%s already has this content: nothing was changed.", inText(at.shown)),
			ChangeView{Kind: "change", Path: at.shown, Action: "unchanged", Seen: old.sum().text()})
	default:
		if err := f.read.check(ctx, call, at, old.sum()); err != nil {
			return belay.Result{}, err
		}
	}
	undo := f.snapshots.begin(call, at, old, content)
	remark, err := at.replace(old, content)
	if err != nil {
		undo()
		return belay.Result{}, f.explain(at, err)
	}
	now := sum(sha256.Sum256(content))
	f.read.saw(call.Session, at, now)
	action, before := "created", ""
	if old != nil {
		action, before = "overwritten", string(old.data)
	}
	lines := strings.Count(in.Content, "\n")
	if in.Content != "" && !strings.HasSuffix(in.Content, "\n") {
		lines++
	}
	text := fmt.Sprintf("%s was %s (%s).%s", inText(at.shown), action, plural(lines, "line", "lines"), remark)
	view := changeView(at.shown, action, before, in.Content)
	view.Seen = now.text()
	return answer(text, view)
}

// current is the content and the state of a file before a change.
type current struct {
	data []byte
	info fs.FileInfo
}

func (c *current) sum() sum { return sha256.Sum256(c.data) }

// namesake returns a note if the replaced file has other hard links.
func (c *current) namesake() string {
	if c == nil {
		return ""
	}
	if n := otherNames(c.info); n > 0 {
		return fmt.Sprintf(" The file had %s (hard links), which still have the old content.", plural(n, "other name", "other names"))
	}
	return ""
}

// load reads a file that will be changed.
func (s spot) load() (*current, error) {
	file, info, err := s.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read, so an error does not matter
	tooLarge := failf(belay.ClassInvalid, "%q is larger than %s, which is too large for this tool. Use the shell.", s.shown, size(maxWhole))
	if info.Size() > maxWhole {
		return nil, tooLarge
	}
	data, err := io.ReadAll(io.LimitReader(file, maxWhole+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxWhole {
		return nil, tooLarge
	}
	return &current{data, info}, nil
}

// errOtherOwner means that the new file cannot have the owner of the old file.
var errOtherOwner = errors.New("it belongs to another user")

// replace replaces the content of a file atomically: readers see the old or the new
// content. old is nil for a new file. The remark is a text for the model.
func (s spot) replace(old *current, content []byte) (remark string, err error) {
	root, dir := s.place.root, path.Dir(s.rel)
	mode := fs.FileMode(0o666) // the umask reduces it
	if old != nil {
		mode = 0o600
		if err := s.writable(old); err != nil {
			return "", err
		}
	} else if dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return "", fmt.Errorf("make directories: %w", err)
		}
	}
	temporary := path.Join(dir, ".belay-"+rand.Text()+".tmp")
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temporary) // only the first error matters
		}
	}()
	remark, err = s.fill(file, old, content)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return "", err
	}
	if err := s.unchanged(old); err != nil {
		return "", err
	}
	if err := root.Rename(temporary, s.rel); err != nil {
		return "", fmt.Errorf("rename: %w", err)
	}
	return old.namesake() + remark, nil
}

// writable returns a failure if the file is not writable. Without this check, write
// access to the directory would be enough to replace the file. It opens the file, but
// changes nothing.
func (s spot) writable(old *current) error {
	if old.info.Mode().Perm()&0o200 == 0 {
		return failf(belay.ClassDenied, "%q is read-only (mode %s), so nothing was changed.", s.shown, old.info.Mode().Perm())
	}
	file, err := s.place.root.OpenFile(s.rel, os.O_WRONLY|nonblocking, 0)
	if errors.Is(err, fs.ErrPermission) {
		return failf(belay.ClassDenied, "%q is not writable by the current user, so nothing was changed.", s.shown)
	}
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	_ = file.Close() // nothing was written
	return nil
}

// fill writes the content, and sets the owner and permissions of the old file. It does
// not keep setuid and setgid, because they were set for the old content.
func (s spot) fill(file *os.File, old *current, content []byte) (remark string, err error) {
	if _, err := file.Write(content); err != nil {
		return "", fmt.Errorf("write: %w", err)
	}
	if old != nil {
		mode := old.info.Mode().Perm()
		group, err := keepOwner(file, old.info)
		if errors.Is(err, errOtherOwner) {
			return "", failf(belay.ClassDenied, "%q belongs to another user. Nothing was changed, because this tool would change the owner of the file. Use the shell to write to the file.", s.shown)
		}
		if err != nil {
			return "", fmt.Errorf("keep the owner: %w", err)
		}
		if !group { // the group permissions were meant for the old group
			mode = mode&^0o070 | mode&0o007<<3
			remark = fmt.Sprintf(" Its group could not be kept, so its mode is now %s.", mode)
		}
		if err := file.Chmod(mode); err != nil {
			return "", fmt.Errorf("keep the mode: %w", err)
		}
		if old.info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			remark += " Its setuid or setgid bit was removed."
		}
	}
	if err := file.Sync(); err != nil {
		return "", fmt.Errorf("sync: %w", err)
	}
	return remark, nil
}

// unchanged returns a failure if another program has changed the file since it was
// loaded.
func (s spot) unchanged(old *current) error {
	info, err := s.place.root.Lstat(s.rel)
	switch {
	case old == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("check for changes: %w", err)
	case old != nil && err == nil && os.SameFile(info, old.info) && info.Size() == old.info.Size() && info.ModTime().Equal(old.info.ModTime()):
		return nil
	}
	return failf(belay.ClassDenied, "%q was just changed by another program, so nothing was changed. Read it again, then adapt the call to the new content.", s.shown)
}
