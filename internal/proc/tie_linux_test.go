package proc_test

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay/internal/proc"
)

// A process that is killed cannot end its children, so the kernel ends them.
func TestAChildDoesNotOutliveAProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	parent.Env = append(os.Environ(), parentTask+"=trap '' TERM HUP; echo $$; while :; do sleep 0.05; done")
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	_ = parent.Process.Kill() // SIGKILL
	_ = parent.Wait()         // ignore the error: the process was killed
	if readErr != nil {
		t.Fatal(readErr)
	}
	endLater(t, line)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !ended(pid) {
		t.Errorf("the child %d is still running", pid)
	}
}

// The kernel ties a child to a thread of its parent. Threads can end while the parent runs,
// and this must not kill the child.
func TestAChildOutlivesOtherThreads(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	var threads, children sync.WaitGroup
	threads.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			var ending sync.WaitGroup
			for range 4 {
				ending.Go(runtime.LockOSThread) // the goroutine never unlocks the thread, so the thread ends with it
			}
			ending.Wait()
		}
	})
	for range 16 {
		children.Go(func() {
			for range 4 {
				if exit, err := proc.Run(t.Context(), sh("sleep 0.05; exit 7")); err != nil || exit.Code != 7 {
					t.Errorf("exit = %+v, %v, want the child's own", exit, err)
				}
			}
		})
	}
	children.Wait()
	close(stop)
	threads.Wait()
}
