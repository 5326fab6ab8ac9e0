package mcptool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/mcptool"
)

// SPEC E-09
func TestToolsOfAServer(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}), child(t, "test", "full", nil))
	want := []string{
		"test__add-0x2e-note", "test__big", "test__change", "test__destroy", "test__die", "test__echo", "test__environ", "test__fail", "test__meet",
		"test__parts", "test__run", "test__structured", "test__wait", "test__walk",
	}
	if diff := cmp.Diff(want, names(e)); diff != "" {
		t.Errorf("the tools (-want +got):\n%s", diff)
	}
	d := tool(t, e, "test__echo").Declaration()
	if d.Description != "Says it again." || !strings.Contains(string(d.InputSchema), `"text"`) {
		t.Errorf("declaration = %+v", d)
	}
	if r := call(t, e, "test__echo", `{"text":"hello"}`); r.Text != "hello" || r.IsError {
		t.Errorf("result = %+v", r)
	}
	if r := call(t, e, "test__add-0x2e-note", `{"text":"it"}`); r.Text != "noted it" {
		t.Errorf("a tool with a dot in its name: result = %+v", r)
	}
	s := e.Servers()[0]
	if s.State != mcptool.StateReady || s.Title != "test" || s.Version != "1.2" || s.Err != nil || len(s.Tools) != len(want) {
		t.Errorf("status = %+v", s)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}), child(t, "test", "full", nil))
	r := call(t, e, "test__parts", `{}`)
	want := "first\n[4 bytes of audio/wav, which cannot be shown here]\n[resource note://1]\na note\n[resource note://2 (two)]"
	if r.Text != want || r.IsError || string(r.Render) != `{"count":2}` {
		t.Errorf("result = %+v, want the text %q", r, want)
	}
	if diff := cmp.Diff([]belay.Media{{MIME: "image/png", Data: []byte("PNG")}}, r.Media); diff != "" {
		t.Errorf("media (-want +got):\n%s", diff)
	}
	if r := call(t, e, "test__structured", `{}`); r.Text != `{"count":2}` {
		t.Errorf("without text the model is told %q, want the structured content", r.Text)
	}
	if r := call(t, e, "test__fail", `{}`); !r.IsError || r.Class != belay.ClassFailed || r.Text != "no such ticket" {
		t.Errorf("a tool that fails: result = %+v", r)
	}
	if r := call(t, e, "test__big", `{"n":1048576}`); len(r.Text) != 1<<20 {
		t.Errorf("a result of 1 MiB has %d bytes", len(r.Text))
	}
	if r := call(t, e, "test__echo", `{"text":7}`); !r.IsError {
		t.Errorf("an input that the server refuses: result = %+v", r)
	}
}

// An agent whose scope has two tools cannot see or call a third tool.
//
// SPEC E-06, E-09
func TestScope(t *testing.T) {
	t.Parallel()
	e, err := mcptool.New(t.Context(), []mcptool.Server{child(t, "test", "full", nil)}, quick(mcptool.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("test__echo", `{"text":"hello"}`),
		belaytest.Calls("test__destroy", `{"text":"it"}`),
		belaytest.Says("That is all."),
	), &belay.Options{Extensions: []belay.Extension{e}, Scope: []string{"test__echo", "test__big"}})
	turn := agent.Say("use the tools")
	turn.Ended(belay.EndTurn)
	turn.Request(1).Offers("test__big", "test__echo")
	turn.Request(1).SystemSays("MCP servers: test.")
	turn.Result("test__echo", "hello")
	turn.ResultFailed("test__destroy", belay.ClassScope, "tool not available: test__destroy")
}

// SPEC E-04, E-06
func TestAnAgentIsNarrowedToSomeServers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		allowed []string
		hint    string
		line    string
		offers  []string
	}{
		{"a server stands for its tools", []string{"my notes"}, "MCP servers: my notes.", "You may only use these MCP servers: my notes.", []string{"my-0x20-notes__add-0x2e-note", "my-0x20-notes__echo"}},
		{"a tool stands for itself", []string{"web__echo"}, "MCP servers: web.", "You may only use these MCP servers: web__echo.", []string{"web__echo"}},
		{"a pattern stands for what it covers", []string{"*__e*"}, "MCP servers: my notes, web.", "You may only use these MCP servers: *__e*.", []string{"my-0x20-notes__echo", "web__echo"}},
		{"an empty list means none", []string{}, "", "You must not use any MCP server.", nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			one, two := child(t, "my notes", "full", nil), child(t, "web", "full", nil)
			one.Tools, two.Tools = []string{"echo", "add.note"}, []string{"echo"}
			e, err := mcptool.New(t.Context(), []mcptool.Server{one, two}, quick(mcptool.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			agent := belaytest.New(t, belaytest.Script(belaytest.Calls("web__echo", `{"text":"hello"}`), belaytest.Says("done")),
				&belay.Options{Extensions: []belay.Extension{e}, Resources: map[string][]string{"mcp": test.allowed}})
			turn := agent.Say("hello")
			turn.Ended(belay.EndTurn)
			turn.Request(1).Offers(test.offers...)
			turn.Request(1).SystemSays(test.hint)
			turn.Request(1).SystemSays("<scope>\n" + test.line + "\n</scope>")
			if contains(test.offers, "web__echo") {
				turn.Result("web__echo", "hello")
			} else {
				turn.ResultFailed("web__echo", belay.ClassScope, "tool not available: web__echo")
			}
		})
	}
}

// SPEC E-06
func TestAServerIsNarrowedToSomeOfItsTools(t *testing.T) {
	t.Parallel()
	some, none := child(t, "some", "full", nil), child(t, "none", "full", nil)
	some.Tools, none.Tools = []string{"e*", "add.note"}, []string{}
	e := open(t, quick(mcptool.Options{}), some, none)
	if diff := cmp.Diff([]string{"some__add-0x2e-note", "some__echo", "some__environ"}, names(e)); diff != "" {
		t.Errorf("the tools (-want +got):\n%s", diff)
	}
}

// An extension without servers does not change the model request.
func TestWithoutServers(t *testing.T) {
	t.Parallel()
	sent := func(extensions ...belay.Extension) string {
		model := belaytest.Script(belaytest.Says("done"))
		agent := belaytest.New(t, model, &belay.Options{Instructions: "Be brief.", Tools: []belay.Tool{belaytest.NewTool("own")}, Extensions: extensions})
		agent.Say("hello").Ended(belay.EndTurn)
		r := model.Requests()[0]
		data, err := json.Marshal([]any{r.System, r.Tools, r.Messages[0].Parts, len(r.Messages)})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	off := child(t, "off", "full", nil)
	off.Disabled = true
	want := sent()
	for _, servers := range [][]mcptool.Server{nil, {off}} {
		if got := sent(open(t, quick(mcptool.Options{}), servers...)); got != want {
			t.Errorf("the request is\n%s\nwant\n%s", got, want)
		}
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	if _, err := mcptool.New(t.Context(), nil, &mcptool.Options{Start: -1}); err == nil || !strings.Contains(err.Error(), "start must not be negative") {
		t.Errorf("err = %v", err)
	}
	_, err := mcptool.New(t.Context(), []mcptool.Server{{Name: "a"}, {Command: "b"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "neither a command nor a url") || !strings.Contains(err.Error(), "the name is missing") {
		t.Errorf("err = %v, want both mistakes", err)
	}
}

// SPEC E-03
func TestTwoOwnersOfAName(t *testing.T) {
	t.Parallel()
	t.Run("two servers of one name", func(t *testing.T) {
		t.Parallel()
		one, two := child(t, "test", "full", nil), child(t, "test", "full", nil)
		one.File, one.Line, two.File, two.Line = "a/mcp.json", 3, "b/mcp.json", 4
		_, err := mcptool.New(t.Context(), []mcptool.Server{one, two}, quick(mcptool.Options{}))
		if err == nil || !strings.Contains(err.Error(), `mcp server "test"`) || !strings.Contains(err.Error(), "a/mcp.json:3") || !strings.Contains(err.Error(), "b/mcp.json:4") {
			t.Errorf("err = %v, want both places named", err)
		}
	})
	t.Run("another extension", func(t *testing.T) {
		t.Parallel()
		e := open(t, quick(mcptool.Options{}), child(t, "test", "full", nil))
		_, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{e, rival{}}})
		if err == nil || !strings.Contains(err.Error(), `"rival"`) || !strings.Contains(err.Error(), `"test__echo"`) || !strings.Contains(err.Error(), `"mcp"`) {
			t.Errorf("err = %v, want both extensions named", err)
		}
	})
	t.Run("a tool of the agent", func(t *testing.T) {
		t.Parallel()
		e := open(t, quick(mcptool.Options{}), child(t, "test", "full", nil))
		_, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{e}, Tools: []belay.Tool{belaytest.NewTool("test__echo")}})
		if err == nil || !strings.Contains(err.Error(), `extension "mcp": tool "test__echo": the agent already has`) {
			t.Errorf("err = %v, want both owners named", err)
		}
	})
}

// rival is an extension with a tool that has the name of a server's tool.
type rival struct{}

func (rival) Name() string { return "rival" }

var rivals = []belay.Tool{belaytest.NewTool("test__echo")}

func (rival) StepTools(string) []belay.Tool { return rivals }

// A tool that its server calls destructive needs approval. A tool that its server calls
// harmless still needs the approval that the floor asks for.
//
// SPEC E-09, P-07
func TestAnnotations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		floor belay.Authorizer
		tool  string
		asked []string
	}{
		{"a destructive tool is asked about where the floor has no objection", nil, "test__destroy", []string{"test__destroy"}},
		{"another is not", nil, "test__add-0x2e-note", nil},
		{"nor one that says nothing", nil, "test__big", nil},
		{"what the floor asks about is asked, read-only or not", asking{}, "test__echo", []string{"test__echo"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			e, err := mcptool.New(t.Context(), []mcptool.Server{child(t, "test", "full", nil)}, quick(mcptool.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			person := belaytest.NewApprover(belaytest.Yes())
			agent := belaytest.New(t, belaytest.Script(belaytest.Calls(test.tool, `{"text":"it"}`), belaytest.Says("done")),
				&belay.Options{Extensions: []belay.Extension{e}, Authorizer: test.floor, Approver: person})
			turn := agent.Say("do it")
			turn.Ended(belay.EndTurn)
			turn.Result(test.tool, "")
			person.Asked(t, test.asked...)
		})
	}
}

// Calls of tools that are marked as read-only run in parallel. Other calls run alone.
func TestReadOnlyToolsOverlap(t *testing.T) {
	t.Parallel()
	e, err := mcptool.New(t.Context(), []mcptool.Server{child(t, "test", "full", nil)}, quick(mcptool.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, serial := range map[string]bool{"test__meet": false, "test__echo": false, "test__big": true, "test__destroy": true, "test__add-0x2e-note": true} {
		one, ok := tool(t, e, name).(belay.TraitTool)
		if !ok || one.Traits().Serial != serial || one.Traits().Idempotent {
			t.Errorf("%s: traits = %+v, want serial %t, and never idempotent on the word of a server", name, one.Traits(), serial)
		}
	}
	step := belaytest.Calls("test__meet", `{}`)
	step.Calls = append(step.Calls, step.Calls[0])
	agent := belaytest.New(t, belaytest.Script(step, belaytest.Says("done")), &belay.Options{Extensions: []belay.Extension{e}})
	turn := agent.Say("meet")
	turn.Ended(belay.EndTurn)
	turn.Result("test__meet", "met")
}

// One bad tool does not hide the other tools. A bad answer of a server becomes a result
// for the model.
func TestAnOddServer(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}), child(t, "odd", "odd", nil))
	if diff := cmp.Diff([]string{"odd__good", "odd__typeless"}, names(e)); diff != "" {
		t.Fatalf("the tools (-want +got):\n%s", diff)
	}
	var left []string
	for _, err := range e.Servers()[0].Left {
		left = append(left, err.Error())
	}
	for i, want := range []string{`tool "good": it is listed twice`, `tool "list": its input schema must have the type object`, `tool "remote": its input schema`, `tool "worse": its input schema`, "it has no name"} {
		if i >= len(left) || !strings.Contains(left[i], want) {
			t.Errorf("left out: %q, want %q", left, want)
		}
	}
	if d := tool(t, e, "odd__good").Declaration(); d.Description != "first" {
		t.Errorf("declaration = %+v, want that of the first", d)
	}
	if _, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{e}}); err != nil {
		t.Errorf("the agent: %v", err)
	}
	if r := call(t, e, "odd__good", `{}`); r.Class != belay.ClassFailed || !strings.Contains(r.Text, "a result that Belay cannot read") {
		t.Errorf("an answer that is no result: %+v", r)
	}
	if r := call(t, e, "odd__typeless", `{"text":"refuse"}`); r.Class != belay.ClassInvalid || !strings.Contains(r.Text, "not that text") {
		t.Errorf("an error of the protocol: %+v", r)
	}
	if r := call(t, e, "odd__typeless", `{}`); r.IsError || r.Text != "" {
		t.Errorf("an empty answer: %+v", r)
	}
	if s := e.Servers()[0]; s.State != mcptool.StateReady {
		t.Errorf("status = %+v, want that it is still there", s)
	}
}

// asking is a floor that asks for approval of every call.
type asking struct{}

func (asking) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{Decision: belay.ToolAsk, Reason: "everything is asked about", By: "asking"}, nil
}
