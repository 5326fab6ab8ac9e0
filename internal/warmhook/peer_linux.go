package warmhook

import (
	"os"
	"syscall"
)

// checkWorker returns an error if the other side is not a process of this user and of this
// program.
func checkWorker(fd int) error {
	pid, err := peer(fd)
	if err != nil {
		return err
	}
	theirs, err := os.Stat("/proc/" + decimal(pid) + "/exe")
	if err != nil {
		return err
	}
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return err
	}
	if !os.SameFile(own, theirs) {
		return os.ErrPermission
	}
	return nil
}

// CheckClient returns an error if the other side is not a process of this user.
func CheckClient(fd int) error {
	_, err := peer(fd)
	return err
}

func peer(fd int) (pid int, err error) {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	if int(cred.Uid) != os.Getuid() || cred.Pid <= 0 {
		return 0, os.ErrPermission
	}
	return int(cred.Pid), nil
}

func decimal(n int) string {
	text := ""
	for ; n > 0; n /= 10 {
		text = string(rune('0'+n%10)) + text
	}
	return text
}
