//go:build unix

package declare_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
)

// trySub runs a subscription for a tool call.
func trySub(t testing.TB, sub hook.Subscription, input string) *toolTrial {
	t.Helper()
	return hooktest.Try(t, belay.ToolPre, sub, hooktest.Input(t, belay.ToolPre, input), &hooktest.Options{Timeout: time.Minute})
}

// selfAsWorker returns a command line that runs this program as a worker.
func selfAsWorker(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"env", workerTask + "=good", noPause, self}
}

// SPEC C-14
func TestOneSubscriptionInOneCall(t *testing.T) {
	t.Parallel()
	address, _ := server(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"decision": "deny", "reason": "because"}`)
	})
	opts := &hook.Options{Timeout: 30 * time.Second, Priority: 7, Match: hook.Match{Tools: []string{"write"}}} // a long timeout, because the machine may be busy
	for kind, make := range map[hook.HandlerKind]func() (hook.Subscription, error){
		hook.HandlerCommand: func() (hook.Subscription, error) {
			return declare.Command(belay.ToolPre, "one", []string{"sh", "-c", `echo because >&2; exit 2`}, opts)
		},
		hook.HandlerWorker: func() (hook.Subscription, error) {
			return declare.Worker(t.Context(), belay.ToolPre, "one", selfAsWorker(t), opts)
		},
		hook.HandlerWebhook: func() (hook.Subscription, error) {
			return declare.Webhook(belay.ToolPre, "one", declare.Endpoint{URL: address + "/a/../hook?b=c"}, opts)
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			sub, err := make()
			if err != nil {
				t.Fatal(err)
			}
			if o := sub.Options(); sub.ID() != "one" || o.Kind != kind || o.Priority != 7 || o.Timeout != 30*time.Second {
				t.Errorf("%s is a %q with %+v, want the given options", sub.ID(), o.Kind, o)
			}
			if trial := trySub(t, sub, call("deny", "because")); trial.Output.Decision != belay.ToolDeny || trial.Output.Reason != "because" || len(trial.Diagnostics) > 0 {
				t.Errorf("%v, want a denial", trial)
			}
		})
	}
}

// SPEC C-14
func TestAWorkerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sub, err := declare.Worker(ctx, belay.ToolPre, "one", selfAsWorker(t), &hook.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(trySub(t, sub, call("pid", "")).Output.Reason)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for deadline := time.Now().Add(time.Minute); !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH); {
		if time.Now().After(deadline) {
			t.Fatalf("the worker %d is still there", pid)
		}
		<-time.After(5 * time.Millisecond)
	}
	if trial := trySub(t, sub, call("nothing", "")); trial.Output.Decision != belay.ToolDeny {
		t.Errorf("%v, want a gate without its worker to deny", trial)
	}
}

// SPEC C-14
func TestOneSubscriptionThatCannotBeMade(t *testing.T) {
	t.Parallel()
	unknown := hook.Define(hook.Definition[file, *tags]{Name: "mine", Kind: hook.Collect, Merge: func(_ *hook.Merging, merged, _ *tags) *tags { return merged }})
	for want, make := range map[string]func() (hook.Subscription, error){
		"the command is empty": func() (hook.Subscription, error) { return declare.Command(belay.ToolPre, "one", nil, nil) },
		"the worker is empty":  func() (hook.Subscription, error) { return declare.Worker(t.Context(), belay.ToolPre, "one", nil, nil) },
		"the URL has no host": func() (hook.Subscription, error) {
			return declare.Webhook(belay.ToolPre, "one", declare.Endpoint{}, nil)
		},
		"use https": func() (hook.Subscription, error) {
			return declare.Webhook(belay.ToolPre, "one", declare.Endpoint{URL: "http://example.com/"}, nil)
		},
		`"mine"`: func() (hook.Subscription, error) { return declare.Command(unknown, "one", []string{"true"}, nil) },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `hook "one"`) {
			t.Errorf("err = %v, want one with %q and the id", err, want)
		}
	}
}

type file struct{}

type tags struct{}

func (*tags) Answer() *hook.Answer { return nil }

func TestLoadFindsFilesBelowItsRoot(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	full := p.put("sub/hooks.yaml", gate("run: exit 0"))
	for _, name := range []string{"sub/hooks.yaml", full} {
		declared, err := declare.Load(p.dir, name)
		if err != nil || len(declared) != 1 || declared[0].File != full {
			t.Errorf("%s: %v, %v, want the hook of %s", name, declared, err, full)
		}
	}
	_, err := declare.Load(filepath.Join(p.dir, "sub"), "../other.yaml")
	if err == nil {
		t.Error("a file outside of the root was read")
	}
}
