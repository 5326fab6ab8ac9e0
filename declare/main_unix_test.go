//go:build unix

package declare_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare/worker"
)

// If this variable is set, this test program is a worker. The value selects its
// behaviour.
const workerTask = "DECLARE_TEST_WORKER"

// noPause is a variable for workers: a program with the race detector waits for a second
// before it ends, unless its environment has this.
const noPause = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if task := os.Getenv(workerTask); task != "" {
		work(task)
		return
	}
	goleak.VerifyTestMain(m)
}

// work is the main function of the worker. Some tasks behave well, others do not.
func work(task string) {
	fmt.Fprintln(os.Stderr, "worker begins:", task)
	switch task {
	case "good":
		worker.Main(worker.On(belay.ToolPre, obey), worker.On(belay.TurnStop, func(context.Context, belay.StopAttempt) (belay.StopVerdict, error) {
			return belay.Continue(strconv.Itoa(os.Getpid())), nil
		}))
	case "mute":
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command("sleep", "3600") //nolint:noctx // it is to be left behind
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stderr, "child", child.Process.Pid)
		forever() // does not read its input and does not end
	case "broken":
		fmt.Fprintln(os.Stderr, "cannot open the database")
		os.Exit(3)
	}
	if task == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "pid", os.Getpid())
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 4<<20)
	for n := 1; in.Scan(); n++ {
		switch hello := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"v":1}}`, n); {
		case task == "older":
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%d,"result":{"v":0}}`+"\n", n)
		case n == 1:
			fmt.Fprintln(os.Stdout, hello)
			if task == "deaf" { // reads nothing after the handshake
				forever()
			}
		case task == "chatty":
			fmt.Fprintln(os.Stdout, "checking the call")
		case task == "stranger":
			fmt.Fprintln(os.Stdout, `{"jsonrpc":"2.0","id":99,"result":{}}`)
		case task == "endless":
			for {
				fmt.Fprint(os.Stdout, strings.Repeat("x", 1<<20))
			}
		case task == "raw": // prints a file and ends
			printRaw(in.Bytes(), n)
		case task == "text":
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%d,"result":"deny"}`+"\n", n)
		case task == "late": // answers the previous call, and then this one
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%d,"result":{"decision":"deny","reason":"late"}}`+"\n", n-1)
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%d,"result":null}`+"\n", n)
		}
	}
	if task == "stubborn" {
		forever() // does not end when its input has ended
	}
	os.Exit(0)
}

// printRaw prints the file that the call names, with the id of the call in it, and exits.
func printRaw(request []byte, id int) {
	var call struct {
		Params struct {
			Input struct {
				Input struct {
					With string `json:"with"`
				} `json:"input"`
			} `json:"input"`
		} `json:"params"`
	}
	if err := json.Unmarshal(request, &call); err != nil {
		panic(err)
	}
	text, err := os.ReadFile(call.Params.Input.Input.With)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(bytes.ReplaceAll(text, []byte(`"id":ID`), fmt.Appendf(nil, `"id":%d`, id))); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// forever waits without end. The signal channel keeps the Go runtime from reporting a
// deadlock.
func forever() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR2)
	<-never
}

// obey does what the input of the call says.
func obey(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in struct{ Do, With string }
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err
	}
	fmt.Fprintln(os.Stdout, "obeying", in.Do) // must not disturb the answers
	switch in.Do {
	case "deny":
		return belay.Deny(in.With), nil
	case "pid":
		return belay.Ask(strconv.Itoa(os.Getpid())), nil
	case "env":
		return belay.Ask(strings.Join(os.Environ(), "\n")), nil
	case "wait":
		<-ctx.Done()
		return belay.Pass, os.WriteFile(in.With, []byte("cancelled"), 0o600)
	case "meet": // the first call waits until the second call arrives
		meet(in.With)
		return belay.Deny("met"), nil
	case "fail":
		return belay.Pass, errors.New("the database is gone")
	case "panic":
		panic("oops")
	case "die":
		os.Exit(7)
	case "child", "orphan": // starts a child; an orphan's parent then exits
		child := exec.Command("sleep", "3600") //nolint:noctx // it is to be left behind
		if err := child.Start(); err != nil {
			return belay.Pass, err
		}
		if err := os.WriteFile(in.With, []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil || in.Do == "child" {
			return belay.Pass, err
		}
		os.Exit(7)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return belay.Pass, nil
}

var meeting = make(chan struct{})

// meet makes the first of two calls wait for the second.
func meet(who string) {
	if who == "first" {
		<-meeting
	} else {
		close(meeting)
	}
}
