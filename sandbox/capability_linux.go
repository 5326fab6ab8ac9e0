package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that root keeps: over files, over its own processes, and for
// low ports. Root can then work with files as it does outside. Without the other
// capabilities, it cannot mount, load kernel modules, or write to devices.
const kept uint64 = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE

// permitted returns the capabilities that this process may use.
func permitted() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted), nil
}

// renounce drops the capabilities of the thread for ever. Root keeps those in kept.
func (s *script) renounce(users bool) error {
	have, err := permitted()
	if err != nil {
		return err
	}
	if users { // a user namespace gives its creator all capabilities
		have = ^uint64(0)
	}
	have &= kept
	if os.Geteuid() != 0 {
		have = 0
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{
		{Effective: uint32(have), Permitted: uint32(have)},
		{Effective: uint32(have >> 32), Permitted: uint32(have >> 32)},
	}
	s.do("drop ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	s.do("drop capabilities", unix.SYS_CAPSET, header, data)
	return nil
}
