package toolbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
)

// someone is a user and group id that no test process has.
const someone = 54_321

// own makes a file that belongs to the given user and group.
func (k *kit) own(name string, uid, gid int, mode os.FileMode) {
	k.t.Helper()
	k.put(name, "old\n")
	name = filepath.Join(k.dir, name)
	if err := os.Chown(name, uid, gid); err != nil {
		k.t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		k.t.Fatal(err)
	}
}

// owned checks the content, owner, group and mode of a file.
func (k *kit) owned(name, content string, uid, gid uint32, mode os.FileMode) {
	k.t.Helper()
	info, err := os.Stat(filepath.Join(k.dir, name))
	if err != nil {
		k.t.Fatal(err)
	}
	is := info.Sys().(*syscall.Stat_t)
	if got := k.content(name); got != content || is.Uid != uid || is.Gid != gid || info.Mode() != mode {
		k.t.Errorf("%s holds %q, of %d:%d, mode %v, want %q, of %d:%d, mode %v", name, got, is.Uid, is.Gid, info.Mode(), content, uid, gid, mode)
	}
}

// as runs calls with the file permissions of another user. It uses a thread of its own,
// which ends afterwards.
func as(t *testing.T, uid, gid int, calls func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		err := syscall.Setfsgid(gid)
		if err == nil {
			err = syscall.Setfsuid(uid)
		}
		if err == nil {
			calls()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestWriteKeepsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make files that belong to others")
	}
	k := newKit(t, nil)
	if err := os.Chmod(k.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	const other = someone + 1
	k.own("readable", 0, 0, 0o644)
	k.own("shared", 0, 0, 0o666)
	k.own("group", someone, other, 0o674)
	k.own("theirs", other, other, 0o640)
	change := func(name string) []belay.Result {
		k.call("read", in{"path": name})
		return []belay.Result{
			k.call("edit", in{"path": name, "old_string": "old", "new_string": "new"}),
			k.call("write", in{"path": name, "content": "newer\n"}),
		}
	}
	results := map[string][]belay.Result{}
	as(t, someone, someone, func() {
		for _, name := range []string{"readable", "shared", "group"} {
			results[name] = change(name)
		}
	})
	results["theirs"] = change("theirs")
	for name, part := range map[string]string{"readable": "is not writable by the current user", "shared": "belongs to another user"} {
		for _, r := range results[name] {
			if r.Class != belay.ClassDenied || !strings.Contains(r.Text, part) {
				t.Errorf("%s = %s %q, want it denied: %s", name, r.Class, r.Text, part)
			}
		}
	}
	k.owned("readable", "old\n", 0, 0, 0o644)
	k.owned("shared", "old\n", 0, 0, 0o666)
	// Before, members of the new group had only the permissions for other users.
	has(t, results["group"][0].Text, "Its group could not be kept, so its mode is now -rw-r--r--.")
	k.owned("group", "newer\n", someone, someone, 0o644)
	k.owned("theirs", "newer\n", other, other, 0o640)
	if entries, err := os.ReadDir(k.dir); err != nil || len(entries) != 4 {
		t.Errorf("entries = %v, %v: want no temporary file left", entries, err)
	}
}
