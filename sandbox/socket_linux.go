package sandbox

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A read-only mount does not prevent connections to a Unix socket in it. The process that
// listens on the socket may do anything: start a container, sign with a key, run a
// command.

// wellKnown are sockets that allow an escape from most sandboxes. They are listed by
// name, because boundSockets does not find listeners in other network namespaces.
var wellKnown = []string{
	"/run/docker.sock",
	"/run/containerd/containerd.sock",
	"/run/crio/crio.sock",
	"/run/podman/podman.sock",
	"/run/dbus/system_bus_socket",
	"/run/systemd/private",
	"/run/snapd.socket",
}

// outsideSockets returns the names of Unix sockets that processes outside may listen on
// and that the policy does not allow. The names have no symbolic links.
func outsideSockets(p Policy, env func(string) string) []string {
	names := slices.Clone(wellKnown)
	names = append(names, env("SSH_AUTH_SOCK"), strings.TrimPrefix(env("DOCKER_HOST"), "unix://"))
	names = append(names, boundSockets()...)
	names = append(names, mountedFiles()...)
	var allowed []os.FileInfo
	for _, name := range p.Sockets {
		if info, err := os.Stat(name); err == nil {
			allowed = append(allowed, info)
		}
	}
	var found []string
	for _, name := range names {
		if !filepath.IsAbs(name) {
			continue
		}
		info, err := os.Stat(name)
		if err != nil || info.Mode()&os.ModeSocket == 0 {
			continue
		}
		if slices.ContainsFunc(allowed, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			continue
		}
		if path, err := filepath.EvalSymlinks(name); err == nil {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// boundSockets returns the file names of all Unix sockets in this network namespace.
func boundSockets() []string {
	var names []string
	lines("/proc/net/unix", func(line string) {
		// Columns: Num RefCount Protocol Flags Type St Inode Path. The path can contain
		// spaces.
		if i := strings.Index(line, " /"); i >= 0 {
			names = append(names, line[i+1:])
		}
	})
	return names
}

// mountedFiles returns all mount points. A mount point can be a single file, such as a
// socket that was passed into a container.
func mountedFiles() []string {
	var names []string
	lines("/proc/self/mountinfo", func(line string) {
		if fields := strings.Fields(line); len(fields) > 4 {
			names = append(names, unescape(fields[4]))
		}
	})
	return names
}

// lines calls f for each line of a file. If the file cannot be read, it does nothing.
func lines(name string, f func(string)) {
	data, err := os.ReadFile(name)
	if err != nil {
		return
	}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	for scanner.Scan() {
		f(scanner.Text())
	}
}

// unescape undoes the octal escapes of /proc/self/mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
