//go:build unix

package proc_test

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/proc"
)

// Another process can write to the standard input of a child while the child runs.
func TestRunTakesStdinFromAFile(t *testing.T) {
	t.Parallel()
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	word := newSignal("first\n")
	command := sh("while read -r line; do echo $line; done; echo end")
	command.StdinFrom, command.Stdout = theirs, word
	go func(ours *os.File) {
		_, _ = ours.WriteString("first\n")
		<-word.come
		_, _ = ours.WriteString("second\n")
		_ = ours.Close()
	}(ours)
	exit, err := proc.Run(t.Context(), command)
	if err != nil || exit.Code != 0 || word.seen.String() != "first\nsecond\nend\n" {
		t.Errorf("exit = %+v, %v, output = %q", exit, err, word.seen.String())
	}
	if _, err := theirs.Stat(); err == nil {
		t.Error("the child's end of the pipe is still open here")
	}
	theirs, ours, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	if _, err := proc.Run(t.Context(), &proc.Command{Argv: []string{"/belay/no/such/program"}, StdinFrom: theirs}); err == nil {
		t.Error("no program: want an error")
	}
	if _, err := theirs.Stat(); err == nil {
		t.Error("without a child the pipe is still open here")
	}
}

// With Whole, background processes of the child's group end with the child.
func TestRunEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	command := sh("sleep 3600 & echo $!")
	command.Whole = true
	exit, stdout, _ := run(t, command)
	if exit.Code != 0 || exit.Stopped != nil || exit.Held {
		t.Errorf("exit = %+v, want the child's own end", exit)
	}
	endLater(t, stdout)
	pid, err := strconv.Atoi(strings.TrimSpace(stdout))
	if err != nil {
		t.Fatal(err)
	}
	if !ended(pid) {
		t.Errorf("the grandchild %d is still running", pid)
	}
}

func TestOfferNeverWaits(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	data := bytes.Repeat([]byte("0123456789"), 100_000)
	rest := proc.Offer(w, data)
	if len(rest) == 0 || len(rest) == len(data) || !bytes.Equal(rest, data[len(data)-len(rest):]) {
		t.Errorf("%d of %d bytes are left, want those that the pipe does not take", len(rest), len(data))
	}
	if again := proc.Offer(w, rest); len(again) != len(rest) {
		t.Errorf("a full pipe took %d bytes", len(rest)-len(again))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data[:len(data)-len(rest)]) {
		t.Errorf("read %d bytes, %v, want those that were taken", len(got), err)
	}
	if left := proc.Offer(w, []byte("x")); len(left) != 1 {
		t.Error("a pipe that is closed took something")
	}
}

// Input that is larger than a pipe is written while the child reads.
func TestRunFeedsMoreThanAPipeTakes(t *testing.T) {
	t.Parallel()
	command := sh("wc -c")
	command.Stdin = make([]byte, 3<<20)
	if _, stdout, _ := run(t, command); strings.TrimSpace(stdout) != "3145728" {
		t.Errorf("the child read %s bytes, want 3145728", stdout)
	}
}
