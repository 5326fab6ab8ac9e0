package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() { //nolint:gochecknoinits // the other process finds its task by name
	childTasks["fill"] = childFills
}

// If the disk is full, writing and opening return ErrFull, and reading still works. When
// there is space again, everything works.
//
// SPEC L-14
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Rename(newFile(t), filepath.Join(dir, "origin.db")); err != nil {
		t.Fatal(err)
	}
	out := runChild(t, "fill", dir, func(cmd *exec.Cmd) { // the process has its own mounts, which end with it
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
	})
	if strings.HasPrefix(out, "cannot mount") {
		t.Skip("this machine lets nobody mount a file system, so no disk is filled here: ", out)
	}
	if !strings.HasSuffix(out, "all is well\n") {
		t.Errorf("the other process says:\n%s", out)
	}
}

// childFills mounts a small disk and fills it.
func childFills(ctx context.Context, dir string) error {
	disk := filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		return err
	}
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err = errors.Join(err, syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m,mode=700")); err != nil {
		fmt.Fprintln(os.Stdout, "cannot mount", err)
		return nil
	}
	file := filepath.Join(disk, "belay.db")
	data, err := os.ReadFile(filepath.Join(dir, "origin.db"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	ballast := filepath.Join(disk, "ballast")
	return lackRoom(ctx, file, func(room int64) error {
		if err := os.Remove(ballast); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if room < 0 {
			return nil
		}
		left := room
		if info, err := os.Stat(file + "-wal"); err == nil {
			left -= info.Size() // the log already uses this space
		}
		return fillDisk(ballast, left)
	}, "free some space")
}

// fillDisk writes a file until only left bytes are free on the disk.
func fillDisk(name string, left int64) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	var size int64
	for block := make([]byte, 4096); err == nil; {
		var n int
		n, err = file.Write(block)
		size += int64(n)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("filling the disk: %w", err)
	}
	return errors.Join(file.Truncate(max(size-left, 0)), file.Close())
}
