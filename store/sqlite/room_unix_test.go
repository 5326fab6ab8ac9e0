//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

func init() { //nolint:gochecknoinits // the other process finds its task by name
	childTasks["limit"] = childLimited
}

// A process that reaches its file size limit (ulimit -f) gets ErrFull when it writes and
// when it opens the store. The process keeps running and can read. With a higher limit it
// can write again.
//
// SPEC L-14
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	if out := runChild(t, "limit", newFile(t)); !strings.HasSuffix(out, "all is well\n") {
		t.Errorf("the other process says:\n%s", out)
	}
}

// childLimited reaches its file size limit. The limit applies to a whole process, so it
// needs its own process.
func childLimited(ctx context.Context, file string) error {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	return lackRoom(ctx, file, func(room int64) error {
		limit := before
		if room >= 0 {
			limit.Cur = uint64(room)
		}
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	}, "ulimit -f")
}

// lackRoom uses a store while there is too little space, and then with enough space. leave
// leaves room bytes for files to grow, or all space if room is negative.
func lackRoom(ctx context.Context, file string, leave func(room int64) error, says string) error {
	s, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	stored, err := s.Open(ctx, "a")
	if err != nil {
		return err
	}
	if err := s.Commit(ctx, say("a", stored.Epoch, 1, "one")); err != nil {
		return err
	}
	large := say("a", stored.Epoch, 2, strings.Repeat("x", 1<<20))
	large.Runs = []hook.Run{run("with-it", hook.Completed)}
	info, err := os.Stat(file + "-wal")
	if err != nil {
		return err
	}
	if err := leave(info.Size() + 100<<10); err != nil {
		return err
	}
	problems := []error{
		wants("a commit without room", s.Commit(ctx, large), sqlite.ErrFull, file, "this write was not stored"),
		wantsTexts(ctx, s, 1), // reading still works
		leave(-1),
		s.Commit(ctx, large),
		wantsTexts(ctx, s, 2),
		s.Close(),
		leave(16 << 10), // less than the index of the log needs
	}
	_, err = sqlite.Open(ctx, file, nil)
	problems = append(problems, wants("opening without room", err, sqlite.ErrFull, file, says))
	reading, err := sqlite.Open(ctx, file, &sqlite.Options{ReadOnly: true})
	if err != nil {
		return errors.Join(append(problems, fmt.Errorf("opening it to read: %w", err))...)
	}
	_, err = reading.Open(ctx, "b")
	problems = append(
		problems, wantsTexts(ctx, reading, 2), wants("opening a session to write", err, sqlite.ErrReadOnly, "read-only"),
		reading.Close(), leave(-1),
	)
	if left, _ := filepath.Glob(file + "-room-*"); len(left) > 0 {
		problems = append(problems, fmt.Errorf("%q are left behind", left))
	}
	s, err = sqlite.Open(ctx, file, nil)
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	health, err := s.Check(ctx)
	if len(health.Problems) > 0 {
		err = fmt.Errorf("check finds %q", health.Problems)
	}
	if err := errors.Join(append(problems, err, wantsTexts(ctx, s, 2), s.Close())...); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "all is well")
	return nil
}

// wants returns an error if err does not wrap want, or if its text does not contain says.
func wants(what string, err, want error, says ...string) error {
	if !errors.Is(err, want) || slices.ContainsFunc(says, func(word string) bool { return !strings.Contains(err.Error(), word) }) {
		return fmt.Errorf("%s gives %w, want %w that says %q", what, err, want, says)
	}
	return nil
}

// wantsTexts returns an error if the number of readable messages is not want.
func wantsTexts(ctx context.Context, s belay.Store, want int) error {
	n := 0
	for _, err := range s.Read(ctx, "a", 0) {
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		n++
	}
	if n != want {
		return fmt.Errorf("%d messages are stored, want %d", n, want)
	}
	return nil
}
