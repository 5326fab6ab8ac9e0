package sandbox

import (
	"fmt"
	"os"
)

// bubblewrap returns the command line of bwrap. The caller has looked up the program,
// because bwrap would look the program up in the PATH of the program's environment.
func (s *Sandbox) bubblewrap(policy Policy, program string, argv []string) ([]string, error) {
	args := []string{
		s.means.bwrap,
		"--unshare-pid", "--unshare-ipc",
		"--die-with-parent", "--new-session",
		"--ro-bind", "/", "/",
		"--dev", "/dev",
		"--proc", "/proc",
	}
	if !policy.Network {
		args = append(args, "--unshare-net")
	}
	if os.Geteuid() == 0 {
		args = append(args, "--cap-drop", "ALL")
		for _, name := range keptNames {
			args = append(args, "--cap-add", name)
		}
	}
	for _, dir := range policy.Write {
		args = append(args, "--bind", dir, dir)
	}
	list, err := holds(policy)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	for _, h := range list {
		switch {
		case h.link:
			return nil, fmt.Errorf("sandbox: cannot protect %s with bubblewrap: it is a symbolic link in a writable directory", h.name)
		case h.absent: // no placeholder: no process would remove it
		case h.sealed:
			args = append(args, "--ro-bind", h.name, h.name)
		default:
			args = append(args, "--bind", h.name, h.name)
		}
	}
	for _, name := range policy.Hide {
		if isDir(name) {
			args = append(args, "--tmpfs", name, "--remount-ro", name)
		} else {
			args = append(args, "--ro-bind", "/dev/null", name)
		}
	}
	for _, name := range outsideSockets(policy, os.Getenv) {
		args = append(args, "--ro-bind", "/dev/null", name)
	}
	args = append(args, "--", program)
	return append(args, argv[1:]...), nil
}

// keptNames are the bwrap names of the capabilities in kept.
var keptNames = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",
	"CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE",
}
