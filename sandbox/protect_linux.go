package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// hold is a name in a writable directory that must not change. The sandbox mounts the
// name on itself, because a mount point cannot be moved or removed.
type hold struct {
	name   string
	sealed bool // nothing below the name can be changed; false for parent directories
	link   bool // the name is a symbolic link
	absent bool // the name does not exist yet
}

// maxLinks is how many symbolic links the kernel follows.
const maxLinks = 40

// holds returns the names that must not change, so that each protected path leads to the
// same file as now. Parents come first.
func holds(p Policy) ([]hold, error) {
	h := &holder{write: p.Write}
	// What is below a sealed directory needs no hold of its own. Above all it needs no
	// placeholder: a database cannot be opened while a directory stands where its journal would be.
	for _, name := range slices.Sorted(slices.Values(p.Protect)) {
		if err := h.walk(name); err != nil {
			return nil, fmt.Errorf("protect %s: %w", name, err)
		}
	}
	return h.list, nil
}

type holder struct {
	write []string
	list  []hold
}

// walk goes from the root to a name and follows symbolic links. It adds a hold for each
// step.
func (h *holder) walk(name string) error {
	at, rest, links := "/", strings.Split(name, "/"), 0
	for {
		rest = slices.DeleteFunc(rest, func(part string) bool { return part == "" || part == "." })
		if len(rest) == 0 {
			h.add(hold{name: at, sealed: true})
			return nil
		}
		next := filepath.Join(at, rest[0]) // the parent of / is /
		rest = rest[1:]
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && isPlaceholder(next, info):
			h.add(hold{name: next, sealed: true, absent: true})
			return nil
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENAMETOOLONG):
			return nil // the program cannot reach the name either
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return syscall.ELOOP
			}
			h.add(hold{name: next, link: true})
			target, err := os.Readlink(next)
			if err != nil {
				return err
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		case len(rest) > 0 && !info.IsDir():
			// A file stands where a directory is expected, such as .git in a worktree.
			h.add(hold{name: next, sealed: true})
			return nil
		default:
			if len(rest) > 0 {
				h.add(hold{name: next})
			}
			at = next
		}
		if h.sealed(at) {
			return nil
		}
	}
}

// add appends a hold, unless the program cannot change the name anyway.
func (h *holder) add(one hold) {
	below := func(dir string) bool { return dir != one.name && within(dir, one.name) }
	if !slices.ContainsFunc(h.write, below) || h.sealed(one.name) {
		return
	}
	if !one.sealed && slices.ContainsFunc(h.list, func(other hold) bool { return other.name == one.name }) {
		return
	}
	h.list = append(h.list, one)
}

func (h *holder) sealed(name string) bool {
	return slices.ContainsFunc(h.list, func(other hold) bool { return other.sealed && within(other.name, name) })
}
