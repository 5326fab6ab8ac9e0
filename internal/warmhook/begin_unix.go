//go:build unix

package warmhook

import (
	"os"
	"syscall"
)

// Start is the result of an attempt to reach a worker.
type Start struct {
	// Read says that standard input was read, and Stdin is its content.
	Read  bool
	Stdin []byte
}

// Begin asks a worker if the process is "belay hook --agent NAME". If a worker answers,
// Begin prints the answer and ends the process.
func Begin() Start {
	agent, event, ok := parse(os.Args)
	if !ok {
		return Start{}
	}
	dir, err := Dir(agent)
	if err != nil {
		return Start{}
	}
	fd, err := connect(dir)
	if err != nil {
		return Start{}
	}
	stdin, err := readAll(0)
	if err != nil {
		_ = syscall.Close(fd) // the process answers by itself
		return Start{}
	}
	reply, err := ask(fd, &Request{Agent: agent, Event: event, Dir: dir, Environ: os.Environ(), Stdin: stdin})
	_ = syscall.Close(fd) // the answer is there, or the process answers by itself
	if err != nil {
		return Start{Read: true, Stdin: stdin}
	}
	if writeAll(1, reply.Stdout) != nil || writeAll(2, reply.Stderr) != nil {
		reply.Code = 2 // the agent got no answer: exit code 2 blocks
	}
	os.Exit(reply.Code)
	return Start{}
}

// parse recognizes "belay hook --agent NAME [--event NAME]". Everything else is for the
// rest of the program.
func parse(args []string) (agent, event string, ok bool) {
	if len(args) < 3 || args[1] != "hook" {
		return "", "", false
	}
	for rest := args[2:]; len(rest) > 0; {
		name, value := rest[0], ""
		rest = rest[1:]
		if i := index(name, '='); i >= 0 {
			name, value = name[:i], name[i+1:]
		} else if len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		switch {
		case value == "":
			return "", "", false
		case name == "--agent" && agent == "":
			agent = value
		case name == "--event" && event == "":
			event = value
		default:
			return "", "", false
		}
	}
	return agent, event, agent != ""
}

func index(text string, b byte) int {
	for i := range len(text) {
		if text[i] == b {
			return i
		}
	}
	return -1
}

// Dir returns the directory in which the search for the project starts. Some agents set a
// variable. The working directory is less reliable, because an agent may change it.
func Dir(agent string) (string, error) {
	name := ""
	switch agent {
	case "claude-code":
		name = "CLAUDE_PROJECT_DIR"
	case "gemini-cli":
		name = "GEMINI_PROJECT_DIR"
	case "cursor":
		name = "CURSOR_PROJECT_DIR"
	}
	if dir := os.Getenv(name); name != "" && dir != "" && dir[0] == '/' {
		if info, err := os.Stat(dir); err == nil && info.IsDir() { //nolint:gosec // the agent says where it works
			return dir, nil
		}
	}
	return os.Getwd()
}

// connect connects to the worker of a directory, and checks who it is.
func connect(dir string) (int, error) {
	path, err := Socket(dir)
	if err != nil {
		return -1, err
	}
	if err := CheckPlace(); err != nil {
		return -1, err
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	syscall.CloseOnExec(fd)
	for _, option := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
		if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, option, &syscall.Timeval{Sec: silence}); err != nil {
			_ = syscall.Close(fd)
			return -1, err
		}
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	if err := checkWorker(fd); err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// silence is how many seconds the command waits for a sign of the worker.
const silence = 2

// ask sends a request and returns the reply.
func ask(fd int, r *Request) (*Reply, error) {
	if err := writeAll(fd, r.Encode()); err != nil {
		return nil, err
	}
	if err := syscall.Shutdown(fd, syscall.SHUT_WR); err != nil {
		return nil, err
	}
	data, err := readAll(fd)
	if err != nil {
		return nil, err
	}
	return decodeReply(data)
}

func readAll(fd int) ([]byte, error) {
	data := make([]byte, 0, 16<<10)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := syscall.Read(fd, data[len(data):cap(data)])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil, err
		case n == 0:
			return data, nil
		}
		if data = data[:len(data)+max(n, 0)]; len(data) > most {
			return nil, errTooLong
		}
	}
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := syscall.Write(fd, data)
		if err != nil && err != syscall.EINTR {
			return err
		}
		data = data[max(n, 0):]
	}
	return nil
}
