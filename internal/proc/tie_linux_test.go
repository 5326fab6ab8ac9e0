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

// A killed process cannot end its children: the kernel does.
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
	_ = parent.Wait()         // it was killed
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

// A child is tied to a thread, and threads can end while their process continues:
// that must not kill a child.
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
				ending.Go(runtime.LockOSThread) // and never unlocked: the thread ends with the goroutine
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
