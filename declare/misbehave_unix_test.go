//go:build unix

package declare_test

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook/codes"
)

// ended reports whether a process has ended. A process that is not yet reaped counts too.
func ended(t testing.TB, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			return true
		}
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(n) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

// endNow kills a process that a test has left running on purpose.
func endNow(t testing.TB, pid string) {
	t.Helper()
	if n, err := strconv.Atoi(strings.TrimSpace(pid)); err == nil {
		_ = syscall.Kill(n, syscall.SIGKILL) // the process may have ended
	}
}

const quick = 50 * time.Millisecond

// SPEC C-06
func TestCommandThatForksAChildHoldingItsOutput(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\nsleep 3600 & echo $! > pid\necho '{\"decision\": \"ask\", \"reason\": \"now\"}'\n")
	begun := time.Now()
	trial := try(t, p.set(gate("command: [./check.sh]", "timeout: 40s"), nil), write)
	endNow(t, p.read("pid"))
	if trial.Output.Decision != belay.ToolAsk || time.Since(begun) > 30*time.Second {
		t.Errorf("after %s: %v, want its answer without waiting for its child", time.Since(begun), trial)
	}
}

// SPEC C-06
func TestCommandThatIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\ntrap '' TERM\nsh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & echo $! > pid\nwhile :; do sleep 0.05; done\n")
	trial := try(t, p.set(gate("command: [./check.sh]", "timeout: 1s"), &declare.Options{Grace: quick}), write)
	if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.Timeout {
		t.Errorf("%v, want a denial with hook.timeout", trial)
	}
	if pid := p.read("pid"); !ended(t, pid) {
		t.Error("its child is still running")
		endNow(t, pid)
	}
}

// SPEC C-06
func TestCommandThatAsksForItsEndGetsSIGTERM(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\ntrap 'echo bye > last; exit 0' TERM\nwhile :; do sleep 0.02; done\n")
	trial := try(t, p.set(gate("command: [./check.sh]", "timeout: 1s"), nil), write)
	if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.Timeout || p.read("last") != "bye\n" {
		t.Errorf("%v, want a denial with hook.timeout, and its last words", trial)
	}
}

// Without a sandbox, Belay cannot end a process that has called setsid. But the hook ends
// in time.
//
// SPEC C-06
func TestCommandThatLeavesItsSession(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("check.py", "#!/usr/bin/env python3\nimport os, time\nif os.fork(): time.sleep(3600)\nos.setsid()\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(3600)\n")
	begun := time.Now()
	trial := try(t, p.set(gate("command: [./check.py]", "timeout: 4s"), &declare.Options{Grace: quick}), write)
	endNow(t, p.read("pid"))
	if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.Timeout || time.Since(begun) > 30*time.Second {
		t.Errorf("after %s: %v, want a denial with hook.timeout", time.Since(begun), trial)
	}
}

// SPEC C-07
func TestCommandThatPrintsAGibibyte(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	for _, test := range []struct{ rule, script, want string }{
		{"standard output", "head -c 1073741824 /dev/zero | tr '\\0' 'x'", "more than 1024 KiB to standard output"},
		{"standard error", "head -c 1073741824 /dev/zero | tr '\\0' 'x' >&2", "more than 64 KiB to standard error"},
		{"standard output of a command that denies", "yes \"{\\\"decision\\\": \\\"pass\\\"} $(printf %0500d 0)\"; exit 2", "more than 1024 KiB to standard output"},
	} {
		p := newPlace(t)
		p.put("check.sh", "#!/bin/sh\n"+test.script+"\n")
		set := p.set(gate("command: [./check.sh]", "timeout: 1m"), &declare.Options{Grace: quick})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		trial := try(t, set, write)
		runtime.ReadMemStats(&after)
		if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.OutputInvalid || !strings.Contains(trial.Output.Reason, test.want) {
			t.Errorf("%s: %v, want a denial with hook.output_invalid: %s", test.rule, trial, test.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s: it allocated %d bytes", test.rule, took)
		}
		if took := time.Since(begun); took > 40*time.Second {
			t.Errorf("%s: it took %s", test.rule, took)
		}
	}
}

// SPEC C-07
func TestCommandMayPrintUpToTheCaps(t *testing.T) {
	t.Parallel()
	trial := sh(t, "head -c 65536 /dev/zero | tr '\\0' e >&2; head -c 1048576 /dev/zero | tr '\\0' o")
	if len(trial.Diagnostics) > 0 || len(trial.Output.Shown()) != 1 || len(trial.Output.Shown()[0].Text) != 1<<20 {
		t.Errorf("diagnostics %v, want all of it shown", trial.Diagnostics)
	}
}

// SPEC C-06
func TestCommandDefaultTimeout(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"run: exit", "command: [ls]", "worker: [ls]", "webhook: https://example.com/", "action: log"} {
		if got := only(t, newPlace(t).set(gate(kind), nil)).Options().Timeout; got != 5*time.Second {
			t.Errorf("%s: timeout = %s, want 5s", kind, got)
		}
	}
	if got := only(t, newPlace(t).set(gate("run: exit", "timeout: 1m30s"), nil)).Options().Timeout; got != 90*time.Second {
		t.Errorf("timeout = %s, want 1m30s", got)
	}
}
