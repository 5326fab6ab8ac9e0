//go:build unix

package killtest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/belay-run/belay/declare/worker"
)

// These are the kinds of entries in the log of effects.
const (
	logSubmitted = "submitted"  // the store has accepted a message
	logTick      = "tick"       // the process had time for another small write to the disk
	logKilled    = "killed"     // the process was killed
	logAsked     = "asked"      // the model got a request
	logResponse  = "response"   // a reader of the stream saw a response that is stored
	logEnded     = "ended"      // a reader of the stream saw the end of a turn
	logToolBegin = "tool_begin" // a tool began
	logToolEnd   = "tool_end"   // a tool has returned
	logHookBegin = "hook_begin"
	logHookEnd   = "hook_end"
)

// entry is a line of the log.
type entry struct {
	Kind string `json:"kind"`
	// Life is the number of the process that wrote the entry. It is 0 for the test process
	// itself and for hooks.
	Life    int    `json:"life,omitempty"`
	Session string `json:"session,omitempty"`
	// Task is the user's message. Step is the number of the model's response to it.
	Task string `json:"task,omitempty"`
	Step int    `json:"step,omitempty"`
	Seq  int64  `json:"seq,omitempty"`
	Call string `json:"call,omitempty"`
	Hook string `json:"hook,omitempty"`
	// Envelope is the input of the hook.
	Envelope *worker.Envelope `json:"envelope,omitempty"`
}

// note appends an entry to the log and returns when the entry is on the disk. Several
// processes may append at the same time, because each entry is a single write.
func note(file string, e *entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// readLog reads the log, in the order in which it was written.
func readLog(t testing.TB, file string) (all []entry) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var e entry
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			t.Fatalf("the log has the line %q: %v", scan.Text(), err)
		}
		all = append(all, e)
	}
	if err := scan.Err(); err != nil {
		t.Fatal(fmt.Errorf("read the log: %w", err))
	}
	return all
}
