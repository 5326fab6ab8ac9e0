package sandbox_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/sandbox"
)

// find looks for a sandbox of one kind only.
func find(kind sandbox.Kind) *sandbox.Sandbox {
	return sandbox.Find(context.Background(), &sandbox.Options{Kinds: []sandbox.Kind{kind}})
}

// describe returns a line about a file, with all properties that an attack could change.
func describe(t testing.TB, name string) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		t.Fatal(err)
	}
	var content []byte
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		content = []byte(read(t, name))
	}
	list := make([]byte, 4096)
	n, err := unix.Llistxattr(name, list)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s inode %d mode %o links %d owner %d:%d modified %d.%d attributes %q content %s\n", name,
		st.Ino, st.Mode, st.Nlink, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec, list[:max(n, 0)], hex.EncodeToString(content))
}

// attack runs in a sandbox and does one thing that a shell cannot do. The exit code is 0
// if the attack worked, and 3 if it was denied.
func attack(name string) {
	err := attacks[name](os.Getenv("OUT"), os.Getenv("TARGET"))
	if err != nil {
		fmt.Println(err) //nolint:forbidigo // the test reads it
		os.Exit(3)
	}
	os.Exit(0)
}

var attacks = map[string]func(out, target string) error{
	"write through a descriptor that was open": func(_, target string) error {
		fd, err := strconv.Atoi(target)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte("bad"))
		return err
	},
	"open for reading and truncate": func(out, _ string) error {
		fd, err := unix.Open(out+"/file", unix.O_RDONLY|unix.O_TRUNC, 0)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	},
	"truncate by name": func(out, _ string) error { return unix.Truncate(out+"/file", 1) },
	"truncate through /proc/self/fd": func(out, _ string) error {
		f, err := os.Open(out + "/file")
		if err != nil {
			return err
		}
		return os.Truncate(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 1)
	},
	"write through /proc/self/fd": func(out, _ string) error {
		f, err := os.Open(out + "/file")
		if err != nil {
			return err
		}
		return os.WriteFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), []byte("bad"), 0)
	},
	"write from an open directory": func(out, _ string) error {
		dir, err := os.Open(out)
		if err != nil {
			return err
		}
		fd, err := unix.Openat(int(dir.Fd()), "bad", unix.O_CREAT|unix.O_WRONLY, 0o644)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	},
	"write through /proc/self/root": func(out, _ string) error {
		return os.WriteFile("/proc/self/root"+out+"/file", []byte("bad"), 0o644)
	},
	"write through /proc/self/cwd": func(string, string) error {
		return os.WriteFile("/proc/self/cwd/../out/file", []byte("bad"), 0o644)
	},
	"write through the root of a process outside": func(out, target string) error {
		return os.WriteFile("/proc/"+target+"/root"+out+"/file", []byte("bad"), 0o644)
	},
	"write through the working directory of a process outside": func(_, target string) error {
		return os.WriteFile("/proc/"+target+"/cwd/bad", []byte("bad"), 0o644)
	},
	"exchange two files": func(out, _ string) error {
		if err := os.WriteFile("mine", []byte("bad"), 0o644); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, "mine", unix.AT_FDCWD, out+"/file", unix.RENAME_EXCHANGE)
	},
	"link a file that is open": func(out, _ string) error {
		f, err := os.Open(out + "/file")
		if err != nil {
			return err
		}
		if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, "linked", unix.AT_SYMLINK_FOLLOW); err != nil {
			return err
		}
		return os.WriteFile("linked", []byte("bad"), 0)
	},
	"set an extended attribute": func(out, _ string) error {
		return unix.Setxattr(out+"/file", "user.bad", []byte("bad"), 0)
	},
	"change times": func(out, _ string) error {
		return os.Chtimes(out+"/file", time.Unix(1, 0), time.Unix(1, 0))
	},
	"change the mode of an open file": func(out, _ string) error {
		f, err := os.Open(out + "/file")
		if err != nil {
			return err
		}
		return f.Chmod(0o777)
	},
	"make a block device": func(string, string) error {
		return unix.Mknod("device", unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0)))
	},
	"mount over a directory": func(out, _ string) error { return unix.Mount("tmpfs", out, "tmpfs", 0, "") },
	"bind a directory": func(out, _ string) error {
		if err := os.Mkdir("mine", 0o755); err != nil {
			return err
		}
		if err := unix.Mount(out, "mine", "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return os.WriteFile("mine/bad", []byte("bad"), 0o644)
	},
	"remount the root": func(out, _ string) error {
		if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
			return err
		}
		return os.WriteFile(out+"/bad", []byte("bad"), 0o644)
	},
	"unmount what is on top": func(out, _ string) error {
		err := errors.New("no mount to remove")
		for _, dir := range []string{filepath.Dir(out) + "/in/protected", filepath.Dir(out) + "/in", "/proc", "/"} {
			if err = unix.Unmount(dir, unix.MNT_DETACH); err == nil {
				return nil
			}
		}
		return err
	},
	"mount in namespaces of its own": func(out, _ string) error {
		return inNewNamespaces(func() error {
			if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return err
			}
			return os.WriteFile(out+"/bad", []byte("bad"), 0o644)
		})
	},
	"unmount in namespaces of its own": func(out, _ string) error {
		return inNewNamespaces(func() error {
			if err := unix.Unmount(filepath.Dir(out)+"/in", unix.MNT_DETACH); err != nil {
				return err
			}
			return os.WriteFile(out+"/bad", []byte("bad"), 0o644)
		})
	},
	"change a mount with the new calls": func(out, _ string) error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, out, unix.OPEN_TREE_CLONE)
		if err != nil {
			return err
		}
		attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return err
		}
		_, err = unix.Openat(fd, "bad", unix.O_CREAT|unix.O_WRONLY, 0o644)
		return err
	},
	"enter the namespaces of a process outside": func(out, target string) error {
		fd, err := unix.Open("/proc/"+target+"/ns/mnt", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
			return err
		}
		return os.WriteFile(out+"/bad", []byte("bad"), 0o644)
	},
	"read through the root of a process outside": func(out, target string) error {
		return tell("/proc/" + target + "/root" + out + "/secret/file")
	},
	"read from an open directory": func(out, _ string) error {
		dir, err := os.OpenRoot(out + "/secret")
		if err != nil {
			return err
		}
		data, err := dir.ReadFile("file")
		fmt.Printf("%s\n", data) //nolint:forbidigo // the test reads it
		return err
	},
	"read what is below a mount": func(out, _ string) error {
		if err := unix.Unmount(out+"/secret/file", unix.MNT_DETACH); err != nil {
			return err
		}
		return tell(out + "/secret/file")
	},
	"read what is below a mount, in namespaces of its own": func(out, _ string) error {
		return inNewNamespaces(func() error {
			if err := unix.Unmount(out+"/secret/file", unix.MNT_DETACH); err != nil {
				return err
			}
			return tell(out + "/secret/file")
		})
	},
	"read in a copy of the mount above": func(out, _ string) error {
		return readInCopy(out)
	},
	"read in a copy of the mount above, in namespaces of its own": func(out, _ string) error {
		return inNewNamespaces(func() error { return readInCopy(out) })
	},
	"trace a process outside": func(_, target string) error {
		pid, err := strconv.Atoi(target)
		if err != nil {
			return err
		}
		runtime.LockOSThread()
		return unix.PtraceSeize(pid)
	},
	"write to the memory of a process outside": func(_, target string) error {
		f, err := os.OpenFile("/proc/"+target+"/mem", os.O_RDWR, 0)
		if err == nil {
			err = f.Close()
		}
		return err
	},
	"read the environment of a process outside": func(_, target string) error {
		_, err := os.ReadFile("/proc/" + target + "/environ")
		return err
	},
	"signal a process outside": func(_, target string) error {
		pid, err := strconv.Atoi(target)
		if err != nil {
			return err
		}
		return unix.Kill(pid, unix.SIGUSR1)
	},
	"connect to a socket": func(_, target string) error { return dial("unix", target) },
	"send to a socket":    func(_, target string) error { return dial("unixgram", target) },
	"connect to an abstract socket": func(_, target string) error {
		return dial("unix", "@"+target)
	},
	"reach a server":        func(_, target string) error { return dial("tcp", target) },
	"reach a server by UDP": func(_, target string) error { return ask("udp", target) },
	"find a way to another machine": func(string, string) error {
		// Dial sends no packet. It only checks whether there is a route.
		for _, address := range []string{"198.51.100.1:53", "[2001:db8::1]:53"} {
			conn, err := net.Dial("udp", address)
			if err == nil {
				return conn.Close()
			}
		}
		return errors.New("there is none")
	},
	"make a socket to the host": func(string, string) error {
		_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		return err
	},
	"make a raw socket": func(string, string) error {
		_, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		return err
	},
	"make a ring": func(string, string) error {
		var params [120]byte
		_, _, errno := syscall.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	},
	"serve and ask": func(_, target string) error {
		for host := range strings.FieldsSeq(target) {
			l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if err != nil {
				return err
			}
			server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
			go func() { _ = server.Serve(l) }() // ends with the process
			answer, err := http.Get("http://" + l.Addr().String())
			if err != nil {
				return err
			}
			if err := answer.Body.Close(); err != nil {
				return err
			}
		}
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			return err
		}
		l, err := net.Listen("unix", dir+"/s")
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }() // it is no longer needed
		return dial("unix", dir+"/s")
	},
	"make a sandbox inside": func(string, string) error {
		s := sandbox.Find(context.Background(), nil)
		argv, err := s.Command(sandbox.Policy{}, []string{"sh", "-c", `echo bad > mine; test ! -e mine`})
		if err != nil {
			return err
		}
		output, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		fmt.Printf("%s %s", s.Kind(), output) //nolint:forbidigo // the test reads it
		return err
	},
	"type into a terminal": func(string, string) error {
		return unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x')
	},
	"drive a device": func(_, target string) error {
		f, err := os.Open(target)
		if err != nil {
			return err
		}
		_, err = unix.IoctlGetInt(int(f.Fd()), unix.BLKSSZGET) // asks for its block size
		return err
	},
	"trace the first process inside": func(string, string) error {
		runtime.LockOSThread()
		return unix.PtraceSeize(1)
	},
	"have more capabilities than over files": func(string, string) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		const files = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
			1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE
		if data[0].Permitted&^files == 0 && data[1].Permitted == 0 {
			return fmt.Errorf("there are %#x", data[0].Permitted)
		}
		return nil
	},
	"get privileges back": func(string, string) error {
		if bits, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || bits == 1 {
			return fmt.Errorf("no_new_privs is %d: %w", bits, err)
		}
		return nil
	},
}

// inNewNamespaces calls f as root of a new user namespace.
func inNewNamespaces(f func() error) error {
	const task = "BELAY_SANDBOX_NAMESPACES"
	if os.Getenv(task) != "" {
		return f()
	}
	process, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   append(os.Environ(), task+"=1"),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		},
	})
	if err != nil {
		return err
	}
	state, err := process.Wait()
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	return err
}

func dial(network, address string) error {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(context.Background(), network, address)
	if err != nil {
		return err
	}
	if strings.HasSuffix(network, "gram") {
		if _, err := conn.Write([]byte("bad")); err != nil {
			return err
		}
	}
	return conn.Close()
}

// ask sends a word to a server and waits for the echo.
func ask(network, address string) error {
	conn, err := new(net.Dialer).DialContext(context.Background(), network, address)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("bad")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 8))
	return err
}

func tell(name string) error {
	data, err := os.ReadFile(name)
	fmt.Printf("%s\n", data) //nolint:forbidigo // the test reads it
	return err
}

// readInCopy reads the file in a copy of the mount, in which nothing is mounted over the
// file.
func readInCopy(out string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, out, unix.OPEN_TREE_CLONE)
	if err != nil {
		return err
	}
	return tell(fmt.Sprintf("/proc/self/fd/%d/secret/file", fd))
}
