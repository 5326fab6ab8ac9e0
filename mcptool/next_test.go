package mcptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

// listening is a model that keeps the requests it gets.
type listening struct {
	belay.Model
	mu    sync.Mutex
	asked []belay.Request
}

func (m *listening) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, *req)
	return m.Model.Stream(ctx, req)
}

// agentOf makes an agent with the servers of e. Its model makes the given calls one after
// the other.
func agentOf(t *testing.T, e *mcptool.Extension, opts belay.Options, calls ...scripted.Call) (*belay.Agent, *listening) {
	t.Helper()
	var steps []scripted.Step
	for _, c := range calls {
		steps = append(steps, scripted.Step{Calls: []scripted.Call{c}})
	}
	model := &listening{Model: scripted.New(append(steps, scripted.Step{Text: "done"}), nil)}
	opts.Extensions = []belay.Extension{e.Shared()}
	agent, err := belay.New(model, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return agent, model
}

// requests runs a turn of an agent from agentOf, and returns the requests to its model.
func requests(t *testing.T, e *mcptool.Extension, opts belay.Options, calls ...scripted.Call) []belay.Request {
	t.Helper()
	agent, model := agentOf(t, e, opts, calls...)
	if turn, err := agent.Session("main").Turn(t.Context(), "go"); err != nil || turn.Reason != belay.EndTurn {
		t.Fatalf("the turn ended %+v: %v", turn, err)
	}
	return model.asked
}

// has reports whether a model request declares a tool.
func has(r belay.Request, name string) bool {
	return slices.ContainsFunc(r.Tools, func(d belay.ToolDeclaration) bool { return d.Name == name })
}

// Tools that a server adds during a call are in the next model request.
//
// SPEC E-09, T-12
func TestAnnouncedToolsAreInTheNextRequest(t *testing.T) { //nolint:paralleltest // see TestHTTP
	for how, start := range map[string]struct { //nolint:paralleltest // likewise
		server      func(t *testing.T) mcptool.Server
		tool, input string
	}{
		"a server that announces before it answers":   {func(t *testing.T) mcptool.Server { t.Helper(); return child(t, "srv", "raw announces", nil) }, "srv__echo", `{}`},
		"a server of the SDK, which announces behind": {func(t *testing.T) mcptool.Server { t.Helper(); return child(t, "srv", "tools", nil) }, "srv__change", `{"text":"new"}`},
		"a server at an address": {func(t *testing.T) mcptool.Server {
			t.Helper()
			s := newServer()
			web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
			t.Cleanup(func() {
				web.CloseClientConnections()
				web.Close()
				mcptool.Guarded().CloseIdleConnections()
			})
			return mcptool.Server{Name: "srv", URL: web.URL}
		}, "srv__change", `{"text":"new"}`},
	} {
		t.Run(how, func(t *testing.T) {
			e := open(t, quick(mcptool.Options{}), start.server(t))
			asked := requests(t, e, belay.Options{}, scripted.Call{Tool: start.tool, Input: start.input})
			if len(asked) != 2 || has(asked[0], "srv__extra") || !has(asked[1], "srv__extra") {
				t.Errorf("of %d requests the second does not have the tool that the first call added", len(asked))
			}
		})
	}
}

// instructing is a server with instructions.
func instructing(text string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{Instructions: text})
	mcp.AddTool(s, &mcp.Tool{Name: "look"}, func(context.Context, *mcp.CallToolRequest, words) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

// serveSDK serves a server of the SDK over HTTP.
func serveSDK(t *testing.T, name string, s *mcp.Server) mcptool.Server {
	t.Helper()
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		mcptool.Guarded().CloseIdleConnections()
	})
	return mcptool.Server{Name: name, URL: web.URL}
}

// The prompt has the instructions of servers if the agent has their tools. The length of
// the instructions is limited.
//
// SPEC E-09, E-04
func TestInstructionsAreInThePrompt(t *testing.T) { //nolint:paralleltest // see TestHTTP
	long := strings.Repeat("Long advice. ", 1_000)
	e := open(t, quick(mcptool.Options{}),
		serveSDK(t, "tickets", instructing("Search before you create a ticket.")), serveSDK(t, "quiet", instructing("")), serveSDK(t, "wordy", instructing(long)),
		serveSDK(t, "a", instructing(long)), serveSDK(t, "b", instructing(long)), serveSDK(t, "last", instructing("Be last.\n"+long)))
	prompt := requests(t, e, belay.Options{Instructions: "You help."})[0].System
	for _, want := range []string{"Instructions of server tickets for its tools, named tickets__TOOL:\n\nSearch before you create a ticket.", "Long advice.", "Long … (the rest is left out)", "left out, because there are too many: last."} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt does not say %q:\n%.500s", want, prompt)
		}
	}
	if strings.Contains(prompt, "Server quiet") || strings.Contains(prompt, "Be last") || utf8.RuneCountInString(prompt) > 8_000 {
		t.Errorf("the prompt has %d characters:\n%.500s", utf8.RuneCountInString(prompt), prompt)
	}
	narrowed := requests(t, e, belay.Options{Resources: map[string][]string{"mcp": {"quiet"}}})[0].System
	if strings.Contains(narrowed, "Search before") || strings.Contains(narrowed, "Long advice") {
		t.Errorf("an agent that may not use a server is given its instructions:\n%s", narrowed)
	}
}

// shelf is a server with resources and prompts.
func shelf() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
	s.AddResource(&mcp.Resource{URI: "note://1", Name: "one", Description: "The first note."}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: "note://1", Text: "the text of a note"}, {URI: "note://1#png", MIMEType: "image/png", Blob: []byte("PNG")},
		}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "note://{id}", Name: "notes"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	})
	s.AddPrompt(&mcp.Prompt{Name: "review", Description: "Reviews something.", Arguments: []*mcp.PromptArgument{{Name: "what", Required: true, Description: "a path"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Review " + r.Params.Arguments["what"] + "."}}}}, nil
		})
	return s
}

// SPEC E-09
func TestResourcesAndPromptsAreReadable(t *testing.T) { //nolint:paralleltest // see TestHTTP
	e := open(t, quick(mcptool.Options{}), serveSDK(t, "shelf", shelf()))
	if got, want := names(e), []string{"shelf__get_prompt", "shelf__read_resource"}; !slices.Equal(got, want) {
		t.Fatalf("the tools are %v, want %v", got, want)
	}
	for _, test := range []struct {
		tool, input string
		class       belay.ResultClass
		want        []string
	}{
		{"shelf__read_resource", `{}`, "", []string{"- note://1 (one): The first note.", "- note://{id} (notes)"}},
		{"shelf__read_resource", `{"uri":"note://1"}`, "", []string{"[resource note://1]\nthe text of a note"}},
		{"shelf__read_resource", `{"uri":"note://2"}`, belay.ClassInvalid, []string{`MCP server "shelf" answered: `}},
		{"shelf__read_resource", `{"uri":7}`, belay.ClassInvalid, nil},
		{"shelf__get_prompt", `{}`, "", []string{"- review: Reviews something.; argument what (required): a path"}},
		{"shelf__get_prompt", `{"name":"review","arguments":{"what":"main.go"}}`, "", []string{"[user]\nReview main.go."}},
		{"shelf__get_prompt", `{"name":"none"}`, belay.ClassInvalid, []string{"answered: "}},
	} {
		r := call(t, e, test.tool, test.input)
		if r.Class != test.class {
			t.Errorf("%s %s: the result is %+v, want class %q", test.tool, test.input, r, test.class)
		}
		for _, want := range test.want {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%s %s: the result is %q, want %q", test.tool, test.input, r.Text, want)
			}
		}
		if strings.Contains(test.input, "note://1") && (len(r.Media) != 1 || string(r.Media[0].Data) != "PNG") {
			t.Errorf("the media are %+v", r.Media)
		}
	}
	if s := e.Servers()[0]; s.State != mcptool.StateReady {
		t.Errorf("the server is %s: %v", s.State, s.Err)
	}
}

// If a server has its own tool read_resource, that tool replaces the tool that Belay
// adds. Server.Tools also limits the tools that Belay adds.
func TestToolsForResourcesAreTools(t *testing.T) { //nolint:paralleltest // see TestHTTP
	clashing := shelf()
	mcp.AddTool(clashing, &mcp.Tool{Name: "read_resource", Description: "its own"}, func(context.Context, *mcp.CallToolRequest, words) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "mine"}}}, nil, nil
	})
	narrow := serveSDK(t, "narrow", shelf())
	narrow.Tools = []string{"get_*"}
	e := open(t, quick(mcptool.Options{}), serveSDK(t, "clash", clashing), narrow)
	if got, want := names(e), []string{"clash__get_prompt", "clash__read_resource", "narrow__get_prompt"}; !slices.Equal(got, want) {
		t.Errorf("the tools are %v, want %v", got, want)
	}
	if r := call(t, e, "clash__read_resource", `{}`); r.Text != "mine" {
		t.Errorf("the server's own tool answered %+v", r)
	}
	for _, s := range e.Servers() {
		if left := len(s.Left); s.Server.Name == "clash" && left != 1 || s.Server.Name == "narrow" && (left != 0 || len(s.Unmatched) > 0) {
			t.Errorf("%s: left out are %v, and unmatched %v", s.Server.Name, s.Left, s.Unmatched)
		}
	}
}

// person is an asker that takes its answers from a list.
type person struct {
	mu      sync.Mutex
	answers []string
	asked   []belay.Inquiry
}

func (p *person) Ask(ctx context.Context, in belay.Inquiry) (string, error) {
	p.mu.Lock()
	p.asked = append(p.asked, in)
	if len(p.answers) == 0 {
		p.mu.Unlock()
		<-ctx.Done()
		return "", ctx.Err()
	}
	defer p.mu.Unlock()
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer, nil
}

// questions returns what the person was asked.
func (p *person) questions() []belay.Inquiry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// answered reports whether the person has no answers left.
func (p *person) answered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.answers) == 0
}

// curious is a server with a tool that asks the user and returns the answer. The input of
// the call is the schema of the question.
func curious() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "curious", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "order"}, func(ctx context.Context, r *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
		params := &mcp.ElicitParams{Message: "Which pizza?\x1b[2J", RequestedSchema: json.RawMessage(in.Text)}
		answer, err := r.Session.Elicit(ctx, params)
		if err != nil {
			return nil, nil, err
		}
		said, err := json.Marshal(answer.Content)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %s", answer.Action, said)}}}, nil, err
	})
	return s
}

// A server's question goes to the user of the session that made the call, like a question
// of ask_user.
//
// SPEC E-09
func TestElicitation(t *testing.T) { //nolint:paralleltest // see TestHTTP
	const pizza = `{"type":"object","required":["size"],"properties":{"size":{"type":"string","enum":["s","l"],"enumNames":["Small","Large"]},"count":{"type":"integer","minimum":1,"maximum":9,"description":"how many"},"extra":{"type":"boolean"}}}`
	e := open(t, quick(mcptool.Options{}), serveSDK(t, "pizza", curious()))
	for _, test := range []struct { //nolint:paralleltest // likewise
		rule, schema string
		answers      []string
		nobody       bool
		want         string
		asked        []string // the beginning of each question
	}{
		{"each field is asked for, those that are required first", pizza, []string{"large", "2", "yes"}, false, `accept {"count":2,"extra":true,"size":"l"}`, []string{"MCP server pizza asks: Which pizza? [2J\nsize\n  1. Small\n  2. Large", "MCP server pizza asks: Which pizza? [2J\ncount: how many\n(optional: the answer - skips this field)", "MCP server pizza asks: Which pizza? [2J\nextra\n(optional: the answer - skips this field)\n  1. yes\n  2. no"}},
		{"an option can be chosen by its number or its value", pizza, []string{"1", "", "no"}, false, `accept {"extra":false,"size":"s"}`, nil},
		{"an answer that does not fit is asked for again", pizza, []string{"huge", "S", "12", "3", ""}, false, `accept {"count":3,"size":"s"}`, []string{"MCP", `The answer "huge" is not valid: choose one of the options`, "MCP", `The answer "12" is not valid: `, "MCP"}},
		{"what is required and not answered is declined", pizza, []string{""}, false, `decline null`, nil},
		{"a question that is never answered well is declined", pizza, []string{"x", "y", "z"}, false, `decline null`, nil},
		{"a question without fields wants a yes", `{"type":"object","properties":{}}`, []string{"yes"}, false, `accept null`, []string{"MCP server pizza asks: Which pizza? [2J\n  1. yes\n  2. no"}},
		{"and a no declines it", `{"type":"object","properties":{}}`, []string{"no"}, false, `decline null`, nil},
		{"titles name the options", `{"type":"object","required":["s"],"properties":{"s":{"type":"string","oneOf":[{"const":"a","title":"The first"},{"const":"b","title":"The second"}]}}}`, []string{"the FIRST"}, false, `accept {"s":"a"}`, []string{"MCP server pizza asks: Which pizza? [2J\n  1. The first\n  2. The second"}},
		{"text is taken as it is", `{"type":"object","required":["s"],"properties":{"s":{"type":"string","maxLength":3}}}`, []string{"long", "abc"}, false, `accept {"s":"abc"}`, nil},
		{"with nobody to ask the call is denied", pizza, nil, true, "Denied by \"belay\": MCP server pizza asks", nil},
		{"a dash skips a field", pizza, []string{"1", "-", "-"}, false, `accept {"size":"s"}`, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			p := &person{answers: test.answers}
			opts := belay.Options{Asker: p}
			if test.nobody {
				opts.Asker, opts.OnAsk = nil, belay.AskDeny
			}
			input, err := json.Marshal(words{Text: test.schema})
			if err != nil {
				t.Fatal(err)
			}
			asked := requests(t, e, opts, scripted.Call{Tool: "pizza__order", Input: string(input)})
			results := asked[1].Messages[len(asked[1].Messages)-1]
			if got := results.Parts[0].Result.Text; !strings.HasPrefix(got, test.want) {
				t.Errorf("the server was answered %q, want %q", got, test.want)
			}
			if test.asked != nil && len(p.asked) != len(test.asked) || len(p.answers) > 0 {
				t.Fatalf("the user was asked %d times: %+v", len(p.asked), p.asked)
			}
			for i, want := range test.asked {
				if !strings.HasPrefix(p.asked[i].Text, want) || p.asked[i].Session == "" {
					t.Errorf("question %d is %q in session %q, want %q", i+1, p.asked[i].Text, p.asked[i].Session, want)
				}
			}
		})
	}
}

// While calls of several sessions are running, Belay does not know which session a
// question belongs to. So no user sees the question, because it may belong to another
// user.
//
// SPEC E-09
func TestElicitationOfOneSessionIsNotShownToAnother(t *testing.T) { //nolint:paralleltest // see TestHTTP
	s := curious()
	began, on := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(on) })
	t.Cleanup(goOn)
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(context.Context, *mcp.CallToolRequest, words) (*mcp.CallToolResult, any, error) {
		close(began)
		<-on
		return &mcp.CallToolResult{}, nil, nil
	})
	e := open(t, quick(mcptool.Options{}), serveSDK(t, "pizza", s))
	other := &person{answers: []string{"a secret"}}
	agent, _ := agentOf(t, e, belay.Options{Asker: other}, scripted.Call{Tool: "pizza__wait", Input: `{}`})
	waiting := make(chan error, 1)
	go func() {
		_, err := agent.Session("elsewhere").Turn(t.Context(), "go")
		waiting <- err
	}()
	<-began
	p := &person{answers: []string{"abc"}}
	asked := requests(t, e, belay.Options{Asker: p}, scripted.Call{Tool: "pizza__order", Input: `{"text":"{\"type\":\"object\",\"required\":[\"s\"],\"properties\":{\"s\":{\"type\":\"string\"}}}"}`})
	results := asked[1].Messages[len(asked[1].Messages)-1]
	if got := results.Parts[0].Result.Text; got != "decline null" || len(p.asked)+len(other.asked) > 0 {
		t.Errorf("the server was answered %q, and %d users were asked", got, len(p.asked)+len(other.asked))
	}
	goOn()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// Aborting a turn also ends a question of the server.
func TestElicitationEndsWithItsCall(t *testing.T) { //nolint:paralleltest // see TestHTTP
	e := open(t, quick(mcptool.Options{}), serveSDK(t, "pizza", curious()))
	asked := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	asker := askerFunc(func(ctx context.Context, _ belay.Inquiry) (string, error) {
		close(asked)
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	})
	agent, _ := agentOf(t, e, belay.Options{Asker: asker}, scripted.Call{Tool: "pizza__order", Input: `{"text":"{\"type\":\"object\",\"properties\":{}}"}`})
	turn, err := agent.Session("s").Turn(ctx, "go")
	<-asked
	if err == nil || turn.Reason != belay.EndAborted {
		t.Errorf("the turn ended %+v: %v", turn, err)
	}
}

type askerFunc func(ctx context.Context, in belay.Inquiry) (string, error)

func (f askerFunc) Ask(ctx context.Context, in belay.Inquiry) (string, error) { return f(ctx, in) }
