package sandbox

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// marker is the first argument of a child that applies a policy. No other command line
// has it. The number is the version of the format.
const marker = "@belay-sandbox-1"

// order is the task of a child. The task is passed as arguments, one file name in each,
// because file names may contain any bytes. It is not passed in the environment, because
// the program inherits the environment.
type order struct {
	kind    Kind
	means   means
	policy  Policy
	program string   // the file to run
	argv    []string // begins with the program's own name
}

// arguments encodes an order as arguments of the child.
func (o order) arguments() []string {
	args := []string{
		marker,
		"kind=" + string(o.kind),
		"abi=" + strconv.Itoa(o.means.abi),
		"users=" + strconv.FormatBool(o.means.users),
		"network=" + strconv.FormatBool(o.policy.Network),
		"program=" + o.program,
		"memory=" + strconv.FormatInt(o.policy.Bounds.Memory, 10),
		"processes=" + strconv.Itoa(o.policy.Bounds.Processes),
		"cpu=" + o.policy.Bounds.CPUTime.String(),
		"settings=" + o.policy.Bounds.Settings,
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"write=", o.policy.Write}, {"protect=", o.policy.Protect}, {"hide=", o.policy.Hide}, {"socket=", o.policy.Sockets}} {
		for _, name := range list.names {
			args = append(args, list.key+name)
		}
	}
	args = append(args, "--")
	return append(args, o.argv...)
}

// parseOrder decodes the arguments after the marker.
func parseOrder(args []string) (order, error) {
	var o order
	for i, arg := range args {
		if arg == "--" {
			o.argv = args[i+1:]
			return o, o.check()
		}
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch key {
		case "kind":
			o.kind = Kind(value)
		case "abi":
			o.means.abi, err = strconv.Atoi(value)
		case "users":
			o.means.users, err = strconv.ParseBool(value)
		case "network":
			o.policy.Network, err = strconv.ParseBool(value)
		case "program":
			o.program = value
		case "memory":
			o.policy.Bounds.Memory, err = strconv.ParseInt(value, 10, 64)
		case "processes":
			o.policy.Bounds.Processes, err = strconv.Atoi(value)
		case "cpu":
			o.policy.Bounds.CPUTime, err = time.ParseDuration(value)
		case "settings":
			o.policy.Bounds.Settings = value
		case "write":
			o.policy.Write = append(o.policy.Write, value)
		case "protect":
			o.policy.Protect = append(o.policy.Protect, value)
		case "hide":
			o.policy.Hide = append(o.policy.Hide, value)
		case "socket":
			o.policy.Sockets = append(o.policy.Sockets, value)
		default:
			return o, fmt.Errorf("unknown argument %q", arg)
		}
		if err != nil {
			return o, fmt.Errorf("argument %q: %w", arg, err)
		}
	}
	return o, fmt.Errorf("the command is missing after %s", marker)
}

// check returns an error for an invalid order.
func (o order) check() error {
	switch {
	case o.kind != Namespaces && o.kind != Landlock && o.kind != Bubblewrap:
		return fmt.Errorf("unknown kind %q", o.kind)
	case o.kind != Bubblewrap && o.means.abi < 1:
		return fmt.Errorf("unknown Landlock ABI %d", o.means.abi)
	case o.program == "" || len(o.argv) == 0:
		return errors.New("there is no program to run")
	default:
		return o.policy.Bounds.check()
	}
}
