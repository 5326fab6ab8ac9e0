package looptest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// SPEC T-02
func TestUnknownToolIsToldWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		tools []string
		scope []string
		call  string
		class belay.ResultClass
		want  string
	}{
		{
			"a near match is named, and all that may be called listed",
			[]string{"read_file", "list", "shell"},
			nil, "raed_file", belay.ClassNotFound,
			`There is no tool "raed_file". Did you mean read_file? You may call: read_file, list, shell.`,
		},
		{
			"several near matches are named, the nearest first",
			[]string{"read_files", "read_file", "shell"},
			nil, "read_fil", belay.ClassNotFound,
			`There is no tool "read_fil". Did you mean read_file or read_files? You may call: read_files, read_file, shell.`,
		},
		{
			"case does not matter for a near match",
			[]string{"Read", "Bash"},
			nil, "read", belay.ClassNotFound,
			`There is no tool "read". Did you mean Read? You may call: Read, Bash.`,
		},
		{
			"without a near match there is the list",
			[]string{"read", "write"},
			nil, "teleport", belay.ClassNotFound,
			`There is no tool "teleport". You may call: read, write.`,
		},
		{"the error says that the agent has no tools", nil, nil, "teleport", belay.ClassNotFound, `There is no tool "teleport". You have no tools.`},
		{
			"a tool out of scope is neither listed nor suggested",
			[]string{"read", "reads"},
			[]string{"read"},
			"readz", belay.ClassNotFound,
			`There is no tool "readz". Did you mean read? You may call: read.`,
		},
		{"a tool out of scope is not available", []string{"read", "write"}, []string{"read"}, "write", belay.ClassScope, "tool not available: write"},
		{"an empty scope leaves no tool", []string{"read"}, []string{}, "read", belay.ClassScope, "tool not available: read"},
		{"a name that no tool can have is mended and unknown", []string{"read"}, nil, " \n", belay.ClassNotFound, `There is no tool "__". You may call: read.`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			opts := &belay.Options{Scope: test.scope}
			for _, name := range test.tools {
				opts.Tools = append(opts.Tools, echoTool(name))
			}
			agent, model := newAgent(t, opts, calls(test.call))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			r := onlyResult(t, session)
			if diff := cmp.Diff(belay.Failed(test.class, test.want), r.Result); diff != "" {
				t.Errorf("the result (-want +got):\n%s", diff)
			}
			for _, declared := range model.Requests()[0].Tools {
				if test.scope != nil && declared.Name != "read" {
					t.Errorf("the request declares %s, which is out of scope", declared.Name)
				}
			}
		})
	}
}

// SPEC T-02
func TestInvalidInputIsToldEveryViolation(t *testing.T) {
	t.Parallel()
	type edit struct {
		From string `json:"from"`
		Line int    `json:"line"`
	}
	tool := belay.NewTool("edit", "edits a file", func(context.Context, struct {
		Path  string            `json:"path"`
		Edits []edit            `json:"edits"`
		Tags  map[string]string `json:"a/b~c,omitempty"`
	},
	) (string, error) {
		return "edited", nil
	}, nil)
	for _, test := range []struct {
		rule, input string
		want        []string // the beginning of each violation
	}{
		{"the error names each missing property", `{}`, []string{"/path: it is required", "/edits: it is required"}},
		{"the error for an unknown property suggests a similar name", `{"path":"a","edits":[],"pat":1}`, []string{`/pat: this property does not exist (did you mean "path"?)`}},
		{
			"the error names the problems at every depth, each with its path",
			`{"path":1,"edits":[{"from":"x","line":1},{"from":2,"line":"3"},{"line":4,"lime":5}]}`,
			[]string{"/path: ", "/edits/1/from: ", "/edits/1/line: ", "/edits/2/from: it is required", `/edits/2/lime: this property does not exist (did you mean "line"?)`},
		},
		{"a pointer escapes slashes and tildes", `{"path":"a","edits":[],"a/b~c":7}`, []string{"/a~1b~0c: "}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, callWith("edit", test.input))
			session := agent.Session("s")
			if all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn); all.Text != "done" {
				t.Errorf("the turn ended with %q and not with the model's answer", all.Text)
			}
			r := onlyResult(t, session)
			told := strings.Split(r.Text, "\n- ")
			if told[0] != "The input of edit does not match its schema:" || r.Class != belay.ClassInvalid || !r.IsError {
				t.Errorf("the result is %+v", r)
			}
			for _, want := range test.want {
				found := 0
				for _, violation := range told[1:] {
					if strings.HasPrefix(violation, want) {
						found++
					}
				}
				if found != 1 {
					t.Errorf("%q occurs %d times in:\n%s", want, found, r.Text)
				}
			}
			if len(told)-1 != len(test.want) {
				t.Errorf("there are %d violations told, not %d:\n%s", len(told)-1, len(test.want), r.Text)
			}
		})
	}
}

// If a call of the model does not run, a hook at tool.denied gets the call and its class.
//
// SPEC T-13
func TestEveryRefusedCallIsAudited(t *testing.T) {
	t.Parallel()
	tool := belay.NewTool("order", "orders", func(context.Context, struct {
		Count int `json:"count"`
	},
	) (string, error) {
		return "ordered", nil
	}, nil)
	rewrites := belay.ToolPre.On("rewrites", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		if strings.Contains(string(call.Input()), "9") {
			return belay.ToolVerdict{Input: json.RawMessage(`{"count":"many"}`)}, nil
		}
		return belay.Pass, nil
	}, &hook.Options{Capabilities: hook.CanRewriteInput})
	for _, test := range []struct {
		tool, input string
		want        string
	}{
		{"order", `{"count":1}`, ""},
		{"order", `{"count":"x"}`, "order invalid by belay"},
		{"order", `{"count":9}`, "order invalid by belay"},
		{"ordr", `{}`, "ordr not_found by belay"},
		{"hidden", `{}`, "hidden scope by belay"},
		{"order", `{"count":2}`, "order denied by gate"},
	} {
		t.Run(test.tool+test.input, func(t *testing.T) {
			t.Parallel()
			var d diary
			audit := belay.ToolDenied.On("audit", func(_ context.Context, c belay.DeniedCall) (belay.Note, error) {
				d.notef("%s %s by %s", c.Tool(), c.Class(), c.By())
				return belay.Note{}, nil
			}, nil)
			gate := belay.ToolPre.On("gate", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
				if strings.Contains(string(call.Input()), "2") {
					return belay.Deny("two are too many"), nil
				}
				return belay.Pass, nil
			}, nil)
			opts := &belay.Options{Tools: []belay.Tool{tool, echoTool("hidden")}, Scope: []string{"order"}, Hooks: []hook.Subscription{audit, rewrites, gate}}
			agent, _ := newAgent(t, opts, callWith(test.tool, test.input))
			takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			if got := strings.Join(d.all(), "; "); got != test.want {
				t.Errorf("the audit sees %q, want %q", got, test.want)
			}
		})
	}
}

// A hook at tool.denied also gets calls that are refused because a check panics, or
// because the scope became smaller while the turn was parked.
//
// SPEC T-13
func TestRefusalsAfterAPanicOrAResumeAreAudited(t *testing.T) {
	t.Parallel()
	var d diary
	store := memstore.New(nil)
	audit := belay.ToolDenied.On("audit", func(_ context.Context, c belay.DeniedCall) (belay.Note, error) {
		d.notef("%s %s by %s", c.Tool(), c.Class(), c.By())
		return belay.Note{}, nil
	}, nil)
	panics := floorFunc(func(belay.ToolCall) (belay.Authorization, error) { panic("no rules") })
	parked := func(session string) {
		agent, _ := newAgent(t, &belay.Options{Store: store, OnAsk: belay.AskPark, Tools: []belay.Tool{echoTool("act")}, Hooks: []hook.Subscription{gateOf("gate", belay.Ask("it acts"))}}, callWith("act", "{}"))
		waits := takeTurn(t, agent.Session(session).Run(t.Context(), "go"), belay.EndParked).Waits
		settleApproval(t, agent, waits[0].Approval, true)
		if err := agent.Session(session).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		rule string
		opts belay.Options
		want string
	}{
		{"a panic of the floor", belay.Options{Authorizer: panics}, "act denied by belay"},
		{"a panic of the floor after a resume", belay.Options{Store: store, Authorizer: panics}, "act denied by belay"},
		{"out of scope after a resume", belay.Options{Store: store, Scope: []string{}}, "act scope by belay"},
	} {
		before := len(d.all())
		test.opts.Tools, test.opts.Hooks = []belay.Tool{echoTool("act")}, []hook.Subscription{audit}
		if test.opts.Store == nil {
			agent, _ := newAgent(t, &test.opts, callWith("act", "{}"))
			takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
		} else {
			parked(test.rule)
			agent, _ := newAgent(t, &test.opts)
			takeTurn(t, agent.Session(test.rule).Resume(t.Context()), belay.EndTurn)
		}
		if got := strings.Join(d.all()[before:], "; "); got != test.want {
			t.Errorf("%s: the audit sees %q, want %q", test.rule, got, test.want)
		}
	}
}

// For a typed tool, null counts as absent, defaults are filled in, and durations are
// parsed. An error names the field, the rule and the value.
//
// SPEC T-14, T-15, T-16
func TestInputsOfATypedTool(t *testing.T) {
	t.Parallel()
	type item struct {
		Name  string `json:"name"`
		Count int    `json:"count" minimum:"1"`
	}
	type order struct {
		Items []item          `json:"items" maxItems:"2"`
		Size  string          `json:"size,omitempty" enum:"s,m,l" default:"m"`
		Wait  time.Duration   `json:"wait,omitempty"`
		Note  *string         `json:"note"`
		Addr  netip.Addr      `json:"addr,omitzero"`
		Extra json.RawMessage `json:"extra,omitempty"`
	}
	tool := belay.NewTool("order", "orders", func(ctx context.Context, in order) (string, error) {
		call := belay.CallOf(ctx)
		return fmt.Sprintf("%s %s: %v %s %s %t %s %s", call.Session, call.Tool, in.Items, in.Size, in.Wait, in.Note == nil, in.Addr, in.Extra), nil
	}, nil)
	const refused = "The input of order does not match its schema:\n- "
	for _, test := range []struct{ input, want string }{
		{`{"items":null}`, "s order: [] m 0s true invalid IP "},
		{`{"items":[{"name":"a","count":2.0}],"size":null,"note":null,"addr":null,"wait":"90s","extra":{"a":null}}`, `s order: [{a 2}] m 1m30s true invalid IP {"a":null}`},
		{`{"items":[],"size":"l","note":"x","addr":"::1"}`, "s order: [] l 0s false ::1 "},
		{`{"items":[],"size":"xl"}`, refused + `/size: "xl" is not one of "s", "m", "l"`},
		{`{"items":[{"name":"a","count":0}]}`, refused + "/items/0/count: 0 is less than the minimum 1"},
		{`{"items":[{"name":"a","count":"2"}]}`, refused + `/items/0/count: want an integer, got the string "2"`},
		{`{"items":[{},{},{}]}`, refused + "/items: want at most 2 items, got 3"},
		{`{"items":{}}`, refused + "/items: want an array or null, got an object"},
		{`{"items":[],"wait":"soon"}`, refused + `/wait: "soon" is not a duration: write it as 90s or 1h30m`},
		{`{"items":[],"addr":"nowhere"}`, "The input of order does not match its schema:\n- /addr: \"nowhere\" is rejected: "},
	} {
		t.Run(test.input, func(t *testing.T) {
			t.Parallel()
			agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, callWith("order", test.input))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			if got := onlyResult(t, session); !strings.HasPrefix(got.Text, test.want) || strings.HasPrefix(test.want, "The input") != (got.Class == belay.ClassInvalid) {
				t.Errorf("the result is %q of class %q, want %q", got.Text, got.Class, test.want)
			}
		})
	}
}

// responses is a model that returns the given responses unchanged.
type responses struct {
	next atomic.Pointer[[]belay.Response]
}

func responding(all ...belay.Response) *responses {
	r := new(responses)
	r.next.Store(&all)
	return r
}

func (r *responses) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		all := *r.next.Load()
		rest := all[1:]
		r.next.Store(&rest)
		yield(belay.Chunk{Response: &all[0]}, nil)
	}
}

// responseOf makes a response from calls.
func responseOf(calls ...belay.CallPart) belay.Response {
	r := belay.Response{StopReason: belay.StopToolUse}
	for i := range calls {
		r.Parts = append(r.Parts, belay.Part{Type: belay.PartCall, Call: &calls[i]})
	}
	return r
}

func doneResponse() belay.Response {
	return belay.Response{Parts: []belay.Part{belay.Text("done")}, StopReason: belay.StopEnd}
}

// SPEC T-02
func TestCallIDsAreMended(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule      string
		ids, want []string
	}{
		{"ids that differ stay", []string{"b", "a"}, []string{"b", "a"}},
		{"missing ids are made", []string{"", "", ""}, []string{"call_1", "call_2", "call_3"}},
		{"a duplicate id gets a suffix", []string{"a", "a", "a"}, []string{"a", "a_2", "a_3"}},
		{"a made id does not take one that is there", []string{"call_2", "", ""}, []string{"call_2", "call_3", "call_4"}},
		{"an id that comes later stays unique too", []string{"a", "a", "a_2"}, []string{"a", "a_2", "a_2_3"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var all []belay.CallPart
			for i, id := range test.ids {
				all = append(all, belay.CallPart{ID: id, Tool: "echo", Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
			}
			agent := agentOf(t, responding(responseOf(all...), doneResponse()), &belay.Options{Tools: []belay.Tool{echoTool("echo")}})
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			var ids []string
			for i, r := range storedResults(t, session) {
				ids = append(ids, r.Call)
				if want := fmt.Sprintf(`{"n":%d}`, i); r.Text != want {
					t.Errorf("result %d is %s", i, r.Text)
				}
			}
			if diff := cmp.Diff(test.want, ids); diff != "" {
				t.Errorf("the ids (-want +got):\n%s", diff)
			}
		})
	}
}

// If a model writes something else than a JSON object, the tool does not run and the model
// gets an error result. The stored call can still be sent to a provider.
//
// SPEC T-02
func TestInputThatIsNoObject(t *testing.T) {
	t.Parallel()
	const again = "The input is not a JSON object. Make the call again with a JSON object."
	const shorter = "The input was cut off because the response reached its maximum length. Make the call again with a shorter input, or split it into several calls."
	for _, test := range []struct {
		rule  string
		input json.RawMessage
		bad   string // the text that the provider kept as malformed
		stop  belay.StopReason
		want  string
		kept  string
	}{
		{"half an object that the limit cut", nil, `{"path": "no`, belay.StopMaxTokens, shorter, `{"path": "no`},
		{"half an object", nil, `{"path": "no`, belay.StopToolUse, again, `{"path": "no`},
		{"half an object that the provider did not put aside", json.RawMessage(`{"path": "no`), "", belay.StopMaxTokens, shorter, `{"path": "no`},
		{"an array", json.RawMessage(`[1]`), "", belay.StopToolUse, again, `[1]`},
		{"a string", json.RawMessage(`"{}"`), "", belay.StopToolUse, again, `"{}"`},
		{"null", json.RawMessage(`null`), "", belay.StopToolUse, again, `null`},
		{"two objects", json.RawMessage(`{}{}`), "", belay.StopToolUse, again, `{}{}`},
		{"an object that is not UTF-8", json.RawMessage("{\"a\":\"\xff\"}"), "", belay.StopToolUse, again, "{\"a\":\"\uFFFD\"}"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			tool := anyTool("write", func(context.Context, *belay.Invocation) (belay.Result, error) { panic("it must not run") }, nil)
			first := responseOf(belay.CallPart{ID: "c", Tool: "write", Input: test.input, Malformed: test.bad})
			first.StopReason = test.stop
			agent := agentOf(t, responding(first, doneResponse()), &belay.Options{Tools: []belay.Tool{tool}})
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			if diff := cmp.Diff(belay.Failed(belay.ClassInvalid, test.want), onlyResult(t, session).Result); diff != "" {
				t.Errorf("the result (-want +got):\n%s", diff)
			}
			if c := storedCalls(t, session)[0]; string(c.Input) != "{}" || c.Malformed != test.kept {
				t.Errorf("the stored call is %+v", c)
			}
			encodes(t, session)
		})
	}
}

// encodes checks that the messages of a session can be written as JSON and read again.
func encodes(t testing.TB, s *belay.Session) {
	t.Helper()
	for _, m := range transcript(t, s) {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("message %d has no JSON form: %v", m.Seq, err)
		}
		if err := json.Unmarshal(data, new(belay.Message)); err != nil {
			t.Fatalf("message %d cannot be read again: %v", m.Seq, err)
		}
	}
}

func TestCallWithoutInputHasAnEmptyOne(t *testing.T) {
	t.Parallel()
	agent := agentOf(t, responding(responseOf(belay.CallPart{Tool: "echo"}), doneResponse()), &belay.Options{Tools: []belay.Tool{echoTool("echo")}})
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	if r := onlyResult(t, session); r.Text != "{}" || r.IsError {
		t.Errorf("the result is %+v", r)
	}
}

// SPEC T-02, T-03
func TestTwoHundredCallsAtOnce(t *testing.T) {
	t.Parallel()
	step := scripted.Step{}
	for i := range 200 {
		tool := "echo"
		if i%10 == 3 {
			tool = "unknown"
		}
		step.Calls = append(step.Calls, scripted.Call{Tool: tool, Input: fmt.Sprintf(`{"n":%d}`, i)})
	}
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{echoTool("echo")}}, step)
	session := agent.Session("s")
	all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	results := storedResults(t, session)
	if len(results) != 200 || len(all.of(belay.EventToolUse)) != 200 || len(all.of(belay.EventToolUseResult)) != 200 {
		t.Fatalf("there are %d results, %d events of calls and %d of results", len(results), len(all.of(belay.EventToolUse)), len(all.of(belay.EventToolUseResult)))
	}
	for i, r := range results {
		if known := i%10 != 3; r.IsError == known || known && r.Text != fmt.Sprintf(`{"n":%d}`, i) {
			t.Errorf("result %d is %+v", i, r)
		}
	}
}

// SPEC T-02
func TestHugeInput(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 2<<20)
	tool := belay.NewTool("count", "counts", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (int, error) {
		return len(in.Text), nil
	}, nil)
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, SpillDir: t.TempDir()}, scripted.Step{Calls: []scripted.Call{
		{Tool: "count", Input: `{"text":"` + huge + `"}`},
		{Tool: "count", Input: `{"` + huge + `":1}`},
		{Tool: "count", Input: strings.Repeat(`{"text":`, 100_000) + "1" + strings.Repeat("}", 100_000)},
		{Tool: huge, Input: `{}`},
	}})
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	results := storedResults(t, session)
	if results[0].Text != fmt.Sprint(len(huge)) {
		t.Errorf("the tool got %s bytes", results[0].Text)
	}
	for i, class := range []belay.ResultClass{"", belay.ClassInvalid, belay.ClassInvalid, belay.ClassNotFound} {
		if r := results[i]; r.Class != class || len(r.Text) > 60_000 {
			t.Errorf("result %d is of class %q and has %d bytes", i, r.Class, len(r.Text))
		}
	}
}
