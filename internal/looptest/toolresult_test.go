package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// postLog returns a subscription that notes each result at tool.post.
func postLog(d *diary) hook.Subscription {
	return belay.ToolPost.On("log", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
		d.notef("%s error=%t class=%s after %s", r.Tool(), r.IsError(), r.Class(), r.Latency())
		return belay.ToolReaction{}, nil
	}, nil)
}

// SPEC T-04
func TestResultHasAClassEverywhere(t *testing.T) {
	t.Parallel()
	tools := []belay.Tool{
		anyTool("fine", func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Result{Text: "ok", Render: json.RawMessage(`{"secret":"of the screen"}`)}, nil
		}, nil),
		anyTool("fails", func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Result{}, errors.New("disk full")
		}, nil),
		anyTool("unclassed", func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Result{Text: "no", IsError: true}, nil
		}, nil),
		echoTool("cached"),
		anyTool("gone", func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Failed(belay.ClassUnavailable, "the server is down"), nil
		}, nil),
		belay.NewTool("strict", "takes a number", func(context.Context, struct {
			N int `json:"n"`
		},
		) (int, error) {
			return 1, nil
		}, nil),
		echoTool("hidden"),
		echoTool("denied"),
		anyTool("slow", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
			<-ctx.Done()
			return belay.Result{}, context.Cause(ctx)
		}, &belay.ToolTraits{Timeout: time.Millisecond}),
	}
	want := []belay.Result{
		{Text: "ok", Render: json.RawMessage(`{"secret":"of the screen"}`)},
		belay.Failed(belay.ClassFailed, "disk full"),
		belay.Failed(belay.ClassFailed, "no"),
		belay.Failed(belay.ClassFailed, "not in the cache"),
		belay.Failed(belay.ClassUnavailable, "the server is down"),
		belay.Failed(belay.ClassInvalid, "The input of strict does not match its schema:\n- /n: it is required"),
		belay.Failed(belay.ClassScope, "tool not available: hidden"),
		belay.Failed(belay.ClassDenied, "Denied by \"no\": no\nDo not repeat this call. Reach the goal in another way, or tell the user what you need."),
		belay.Failed(belay.ClassTimeout, "The tool did not return within 1ms and was cancelled. The call may or may not have had an effect."),
		belay.Failed(belay.ClassNotFound, `There is no tool "nowhere". You may call: fine, fails, unclassed, cached, gone, strict, denied, slow.`),
	}
	synctest.Test(t, func(t *testing.T) {
		agent, model := newAgent(t, &belay.Options{
			Tools: tools, Scope: []string{"fine", "fails", "unclassed", "cached", "gone", "strict", "denied", "slow"},
			Hooks: []hook.Subscription{belay.ToolPre.On("no", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.Deny("no"), nil
			}, &hook.Options{Match: hook.Match{Tools: []string{"denied"}}})},
			Interceptors: []belay.Interceptor{{Name: "cache", Tool: "cached", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
				return belay.Interception{Result: &belay.Result{Text: "not in the cache", IsError: true}}, nil
			}}},
		}, calls("fine", "fails", "unclassed", "cached", "gone", "strict", "hidden", "denied", "slow", "nowhere"))
		session := agent.Session("s")
		all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)

		results := storedResults(t, session)
		told := make(map[string]*belay.Result)
		for _, e := range all.of(belay.EventToolUseResult) {
			if told[e.Call.ID] != nil {
				t.Errorf("the result event of %s was sent twice", e.Call.ID)
			}
			told[e.Call.ID] = e.Result
		}
		for i := range want {
			if diff := cmp.Diff(want[i], results[i].Result); diff != "" {
				t.Errorf("stored result of %s (-want +got):\n%s", results[i].Tool, diff)
			}
			if diff := cmp.Diff(&want[i], told[results[i].Call]); diff != "" {
				t.Errorf("told result of %s (-want +got):\n%s", results[i].Tool, diff)
			}
		}
		// This is the JSON that a store writes and an API sends.
		wire, err := json.Marshal(results[1])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"call":"call_2","tool":"fails","text":"disk full","is_error":true,"class":"failed"}`, string(wire)); diff != "" {
			t.Errorf("on the wire (-want +got):\n%s", diff)
		}
		if len(model.Requests()) != 2 {
			t.Errorf("the model was asked %d times", len(model.Requests()))
		}
	})
}

// Render data is not part of any text that the model gets.
//
// SPEC T-04
func TestRenderDataIsNotInTheTextOfARequest(t *testing.T) {
	t.Parallel()
	const secret = "only for the screen"
	tool := anyTool("show", func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: "shown", Render: json.RawMessage(`"` + secret + `"`)}, nil
	}, nil)
	agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, calls("show"))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	for _, req := range model.Requests() {
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				text := p.Text
				if p.Result != nil {
					text += p.Result.Text
				}
				if strings.Contains(text, secret) {
					t.Errorf("message %d tells the model %q", m.Seq, text)
				}
			}
		}
	}
	if got := string(onlyResult(t, session).Render); got != `"`+secret+`"` {
		t.Errorf("the transcript keeps %s for the screen", got)
	}
}

// SPEC T-04
func TestRenderDataThatIsNoJSONIsStillStored(t *testing.T) {
	t.Parallel()
	tool := anyTool("show", func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: "shown", Render: json.RawMessage(`<b>`)}, nil
	}, nil)
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, calls("show"))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	encodes(t, session)
	var shown string
	if err := json.Unmarshal(onlyResult(t, session).Render, &shown); err != nil || shown != "<b>" {
		t.Errorf("the render data is %s: %v", onlyResult(t, session).Render, err)
	}
}

// SPEC T-08
func TestToolThatMisbehavesIsAnErrorResult(t *testing.T) {
	t.Parallel()
	type run = func(ctx context.Context, call *belay.Invocation) (belay.Result, error)
	for _, test := range []struct {
		rule   string
		run    run
		traits belay.ToolTraits
		class  belay.ResultClass
		text   string
		took   time.Duration
	}{
		{"a panic", func(context.Context, *belay.Invocation) (belay.Result, error) { panic("oh no") }, belay.ToolTraits{}, belay.ClassFailed, "the tool panicked: oh no", 0},
		{"a panic of an error", func(context.Context, *belay.Invocation) (belay.Result, error) {
			panic(errors.New("oh no"))
		}, belay.ToolTraits{}, belay.ClassFailed, "the tool panicked: oh no", 0},
		{"a panic after a while", func(context.Context, *belay.Invocation) (belay.Result, error) {
			<-time.After(time.Second)
			panic("late")
		}, belay.ToolTraits{Serial: true}, belay.ClassFailed, "the tool panicked: late", time.Second},
		{"Goexit", func(context.Context, *belay.Invocation) (belay.Result, error) {
			runtime.Goexit()
			return belay.Result{}, nil
		}, belay.ToolTraits{}, belay.ClassFailed, "the tool ended its goroutine: runtime.Goexit was called", 0},
		{"a timeout of its own", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
			<-ctx.Done()
			return belay.Result{}, context.Cause(ctx)
		}, belay.ToolTraits{Timeout: 7 * time.Second}, belay.ClassTimeout, "The tool did not return within 7s and was cancelled. The call may or may not have had an effect.", 7 * time.Second},
		{"the timeout of 5 minutes that every tool has", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
			<-ctx.Done()
			return belay.Result{}, context.Cause(ctx)
		}, belay.ToolTraits{}, belay.ClassTimeout, "The tool did not return within 5m0s and was cancelled. The call may or may not have had an effect.", 5 * time.Minute},
		{"an answer that comes after the timeout", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
			<-ctx.Done()
			<-time.After(time.Second)
			return belay.Result{Text: "too late"}, nil
		}, belay.ToolTraits{Timeout: time.Second}, belay.ClassTimeout, "The tool did not return within 1s and was cancelled. The call may or may not have had an effect.", 2 * time.Second},
		{"a tool without a bound", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
			select {
			case <-time.After(24 * time.Hour):
				return belay.Result{Text: "at last"}, nil
			case <-ctx.Done():
				return belay.Result{}, context.Cause(ctx)
			}
		}, belay.ToolTraits{Timeout: -1}, "", "at last", 24 * time.Hour},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d diary
				opts := &belay.Options{Tools: []belay.Tool{anyTool("bad", test.run, &test.traits), echoTool("echo")}, Hooks: []hook.Subscription{postLog(&d)}}
				agent, _ := newAgent(t, opts, calls("bad"), calls("echo"))
				session := agent.Session("s")
				takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
				results := storedResults(t, session)
				if r := results[0]; r.Text != test.text || r.Class != test.class || r.IsError != (test.class != "") {
					t.Errorf("the result is %+v", r)
				}
				want := []string{fmt.Sprintf("bad error=%t class=%s after %s", test.class != "", test.class, test.took), "echo error=false class= after 0s"}
				if diff := cmp.Diff(want, d.all()); diff != "" {
					t.Errorf("tool.post (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// If a tool ignores its context, it is abandoned after the grace period. When it returns
// later, its result is dropped.
//
// SPEC T-08
func TestToolThatIgnoresItsCancelIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		abort bool
		class belay.ResultClass
	}{
		{"after its timeout", false, belay.ClassTimeout},
		{"after an abort", true, belay.ClassAborted},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				stubborn := anyTool("stubborn", func(context.Context, *belay.Invocation) (belay.Result, error) {
					<-release
					return belay.Result{Text: "who is still there?"}, nil
				}, &belay.ToolTraits{Timeout: time.Minute})
				var d diary
				agent, _ := newAgent(t, &belay.Options{
					Tools: []belay.Tool{stubborn}, Hooks: []hook.Subscription{postLog(&d)}, Limits: belay.Limits{Grace: 3 * time.Second},
				}, calls("stubborn"))
				session := agent.Session("s")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				took := time.Minute
				if test.abort {
					took = time.Second
					time.AfterFunc(took, cancel)
				}
				start := time.Now()
				turn, err := session.Turn(ctx, "go")
				if test.abort != errors.Is(err, context.Canceled) || test.abort != (turn.Reason == belay.EndAborted) {
					t.Errorf("the turn ended %s: %v", turn.Reason, err)
				}
				took += 3 * time.Second
				if got := time.Since(start); got != took {
					t.Errorf("the turn took %s, not %s", got, took)
				}
				if r := onlyResult(t, session); r.Class != test.class {
					t.Errorf("the result is %+v", r)
				}
				if diff := cmp.Diff([]string{fmt.Sprintf("stubborn error=true class=%s after %s", test.class, took)}, d.all()); diff != "" {
					t.Errorf("tool.post (-want +got):\n%s", diff)
				}
				before := transcript(t, session)
				close(release)
				synctest.Wait() // the bubble cannot end while the tool's goroutine runs
				if after := transcript(t, session); len(after) != len(before) {
					t.Errorf("the late answer left something: %d messages became %d", len(before), len(after))
				}
			})
		})
	}
}

// When a turn is over and its tools have returned, no goroutine is left.
//
// SPEC T-08
//
//nolint:paralleltest // goleak looks at all goroutines
func TestToolsLeaveNoGoroutinesBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	agent, err := belay.New(scripted.New([]scripted.Step{calls("late", "panics", "exits", "echo"), says("done")}, nil), &belay.Options{
		Limits: belay.Limits{Grace: time.Nanosecond},
		Tools: []belay.Tool{
			anyTool("panics", func(context.Context, *belay.Invocation) (belay.Result, error) { panic("oh no") }, nil),
			anyTool("exits", func(context.Context, *belay.Invocation) (belay.Result, error) {
				runtime.Goexit()
				return belay.Result{}, nil
			}, nil),
			anyTool("late", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
				<-ctx.Done()
				return belay.Result{Text: "late"}, nil
			}, &belay.ToolTraits{Timeout: time.Nanosecond}),
			echoTool("echo"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	if got := len(storedResults(t, session)); got != 4 {
		t.Errorf("there are %d results", got)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}

// SPEC T-09
func TestOversizedResultIsCutAndKeptWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		whole  string
		limit  int // the limit of the tool; 0: the limit of the agent
		head   string
		tail   string
		marker string
	}{
		{"10 MiB", strings.Repeat("a", 5<<20) + strings.Repeat("z", 5<<20), 0, strings.Repeat("a", 33_333), strings.Repeat("z", 16_666), "10435761 of 10485760 characters left out"},
		{"a tool's own limit", strings.Repeat("ä", 100) + strings.Repeat("ö", 100), 30, strings.Repeat("ä", 20), strings.Repeat("ö", 10), "170 of 200 characters left out"},
		{"binary is made text first", strings.Repeat("\xff\x00", 500), 9, "\uFFFD\x00\uFFFD\x00\uFFFD\x00", "\x00\uFFFD\x00", "991 of 1000 characters left out"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "spilled")
			tool := anyTool("dump", func(context.Context, *belay.Invocation) (belay.Result, error) {
				return belay.Result{Text: test.whole}, nil
			}, &belay.ToolTraits{MaxResult: test.limit})
			agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, SpillDir: dir},
				scripted.Step{Calls: []scripted.Call{{ID: "../../../" + strings.Repeat("x", 300), Tool: "dump"}}})
			session := agent.Session("../s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			r := onlyResult(t, session)
			if within, err := filepath.Rel(dir, r.Spilled); r.IsError || err != nil || !filepath.IsLocal(within) {
				t.Fatalf("the result is an error or was not spilled to %s: %q", dir, r.Spilled)
			}
			want := test.head + "\n\n[... " + test.marker + "; the full text is in " + r.Spilled + " ...]\n\n" + test.tail
			if r.Text != want {
				t.Errorf("the text has %d bytes, not the %d wanted", len(r.Text), len(want))
			}
			whole, err := os.ReadFile(r.Spilled)
			if err != nil {
				t.Fatal(err)
			}
			if string(whole) != strings.ToValidUTF8(test.whole, "\uFFFD") {
				t.Errorf("the file has %d bytes, the result had %d", len(whole), len(test.whole))
			}
			for path, mode := range map[string]os.FileMode{r.Spilled: 0o600, dir: os.ModeDir | 0o700} {
				if info, err := os.Stat(path); err != nil || info.Mode() != mode {
					t.Errorf("%s: mode %v, not %v (%v)", path, info.Mode(), mode, err)
				}
			}
		})
	}
}

// SPEC T-09
func TestResultOfJustTheLimitIsNotCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := strings.Repeat("ü", 50_000)
	tool := anyTool("dump", func(context.Context, *belay.Invocation) (belay.Result, error) { return belay.Result{Text: whole}, nil }, nil)
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, SpillDir: dir}, calls("dump"))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	if r := onlyResult(t, session); r.Text != whole || r.Spilled != "" {
		t.Errorf("the result has %d bytes of %d and is in %q", len(r.Text), len(whole), r.Spilled)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("there are %d files (%v)", len(files), err)
	}
}

// SPEC T-09
func TestResultThatCannotBeKeptIsStillCut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tool := anyTool("dump", func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: strings.Repeat("x", 100)}, nil
	}, &belay.ToolTraits{MaxResult: 10})
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, SpillDir: file}, calls("dump"))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	want := "xxxxxx\n\n[... 91 of 100 characters left out; the rest is lost ...]\n\nxxx"
	if r := onlyResult(t, session); r.Text != want || r.Spilled != "" {
		t.Errorf("the result is %+v", r)
	}
}

// Errors, reasons and replaced results have the same limit and the same encoding as other
// results.
//
// SPEC T-09
func TestEveryResultIsHeldToTheLimit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long\xff", 1000)
	for _, test := range []struct {
		rule string
		opts belay.Options
	}{
		{"an error of the tool", belay.Options{Tools: []belay.Tool{anyTool("any", func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Result{}, errors.New(long)
		}, nil)}}},
		{"the reason of a denial", belay.Options{Tools: []belay.Tool{echoTool("any")}, Hooks: []hook.Subscription{gateOf("gate", belay.Deny(long))}}},
		{"an answer in the tool's place", belay.Options{Tools: []belay.Tool{echoTool("any")}, Interceptors: []belay.Interceptor{{
			Name: "cache", Tool: "*", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
				return belay.Interception{Result: &belay.Result{Text: long}}, nil
			},
		}}}},
		{"a result that an interceptor changed", belay.Options{Tools: []belay.Tool{echoTool("any")}, Interceptors: []belay.Interceptor{{
			Name: "more", Tool: "*", After: func(context.Context, *belay.Invocation, belay.Result) (belay.Result, error) {
				return belay.Result{Text: long}, nil
			},
		}}}},
		{"a result that a hook changed", belay.Options{Tools: []belay.Tool{echoTool("any")}, Hooks: []hook.Subscription{
			belay.ToolPost.On("more", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
				return belay.RewriteResult(long), nil
			}, &hook.Options{Capabilities: hook.CanRewriteOutput}),
		}}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			opts := test.opts
			opts.SpillDir = t.TempDir()
			opts.Limits.ResultCharacters = 300
			agent, _ := newAgent(t, &opts, calls("any"))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			r := onlyResult(t, session)
			if !strings.Contains(r.Text, " characters left out; the full text is in "+r.Spilled) || !utf8.ValidString(r.Text) || utf8.RuneCountInString(r.Text) > 600 {
				t.Errorf("the result has %d bytes: %.200q", len(r.Text), r.Text)
			}
		})
	}
}

// If a hook that may rewrite a result fails closed, the model does not get the result,
// even if the turn is aborted meanwhile.
//
// SPEC T-08
func TestResultIsWithheldWhenItsRewriterFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		abort bool
	}{{"it fails", false}, {"it is cut short by an abort", true}} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			redact := belay.ToolPost.On("redact", func(ctx context.Context, _ belay.ToolResult) (belay.ToolReaction, error) {
				if test.abort {
					cancel()
					<-ctx.Done()
					return belay.ToolReaction{}, context.Cause(ctx)
				}
				return belay.ToolReaction{}, errors.New("out of order")
			}, &hook.Options{Capabilities: hook.CanRewriteOutput, Failure: hook.Closed})
			agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{echoTool("echo")}, Hooks: []hook.Subscription{redact}}, callWith("echo", `{"password":"hunter2"}`))
			session := agent.Session("s")
			all := take(session.Run(ctx, "go"))
			if r := onlyResult(t, session); strings.Contains(r.Text, "hunter2") || !strings.HasPrefix(r.Text, "[result withheld: ") {
				t.Errorf("the stored result is %q", r.Text)
			}
			for _, e := range all.of(belay.EventToolUseResult) {
				if strings.Contains(e.Result.Text, "hunter2") {
					t.Errorf("the told result is %q", e.Result.Text)
				}
			}
		})
	}
}
