package mcptool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

// The answers of raw servers, by behaviour and method. ${SECRET} stands for the secret
// that the server was given.
var (
	rawAnswers = map[string]map[string]string{
		"strange lists": {
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}}}`,
			"tools/list": `{"tools":[null,{"name":"echo","inputSchema":{"type":"object"}},{"name":"loud","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes"}},` +
				`{"name":7},{"name":"odd","inputSchema":"none"}]}`,
			"resources/list":           `{"resources":[null,{"uri":"note://1","name":"one","size":"big"},{"uri":7},"none"]}`,
			"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"note://{id}","name":"notes","annotations":3}]}`,
			"resources/read":           `{"contents":[null,{"uri":"note://1","text":"fine"},{"uri":"note://2","blob":"***"}]}`,
			"prompts/list":             `{"prompts":[null,{"name":"review","description":"Reviews.","arguments":[null,{"name":"what","required":"yes"}]},{"name":"plain","arguments":[null]}]}`,
			"prompts/get":              `{"messages":[null,{"role":"user","content":{"type":"hologram"}},{"role":7,"content":{"type":"text","text":"said"}}]}`,
		},
		"lists of nothing": {
			"initialize":               `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}}}`,
			"tools/list":               `{"tools":[null]}`,
			"resources/list":           `{"resources":[null]}`,
			"resources/templates/list": `{"resourceTemplates":[null]}`,
			"resources/read":           `{"contents":[null]}`,
			"prompts/list":             `{"prompts":[null]}`,
			"prompts/get":              `{"messages":[null]}`,
		},
		"unreadable lists": {
			"initialize":     `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}}}`,
			"resources/list": `{"resources":"none"}`,
			"resources/read": `{"contents":7}`,
			"prompts/list":   `["review"]`,
			"prompts/get":    `{"messages":{}}`,
		},
		"asks without end": {
			"initialize":      "",
			"server/discover": rawDiscovered,
			"tools/call":      `{"resultType":"input_required","inputRequests":{}}`,
		},
		"leaks in its instructions":   {"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"instructions":"Log in with ${SECRET}."}`},
		"leaks in the name of a tool": {"tools/list": `{"tools":[{"name":"a ${SECRET}","inputSchema":"none"}]}`},
	}
	rawErrors = map[string]map[string]string{
		"asks without end":          {"initialize": "that was long ago"},
		"leaks in the handshake":    {"initialize": "no access with ${SECRET}", "server/discover": "no access with ${SECRET}"},
		"leaks it escaped":          {"initialize": "no access with ${ESCAPED} or ${QUOTED}"},
		"leaks a token of its own":  {"initialize": "no access with Authorization: Bearer hunter-of-others"},
		"leaks when it lists":       {"tools/list": "no access with ${SECRET}"},
		"leaks when it lists again": {"tools/list": "no access with ${SECRET}"},
	}
	rawQuestions = map[string]string{
		"asks for an address": `{"mode":"url","message":"Log in.","url":"https://example.com/login","elicitationId":"1"}`,
		"asks with a secret":  `{"message":"Is ${SECRET} yours?","requestedSchema":{"type":"object","required":["s"],"properties":{"s":{"type":"string","description":"or ${SECRET}","enum":["${SECRET}","b"]}}}}`,
		"asks for too much":   `{"message":"All of it.","requestedSchema":{"type":"object","properties":{` + manyProperties(21) + `}}}`,
	}
	oddNotifications = []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":"half"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":7}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":7}`,
		`{"jsonrpc":"2.0","method":"notifications/unknown","params":{}}`,
		`{"jsonrpc":"2.0","id":"unknown","result":{"content":[{"type":"hologram"}]}}`,
	}
)

// manyProperties returns n properties of a schema.
func manyProperties(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
	}
	return strings.Join(all, ",")
}

// If a list entry is bad, only the bad part of the entry is lost. If a list has the wrong
// type, only the call fails. The server stays up in both cases.
//
// SPEC E-09
func TestStrangeLists(t *testing.T) { //nolint:paralleltest // see TestHTTP
	for how, start := range map[string]func(t *testing.T, kind string) mcptool.Server{ //nolint:paralleltest // likewise
		"over pipes": func(t *testing.T, kind string) mcptool.Server { t.Helper(); return child(t, "raw", "raw "+kind, nil) },
		"by HTTP":    func(t *testing.T, kind string) mcptool.Server { t.Helper(); return serveRawHTTP(t, kind) },
	} {
		t.Run(how, func(t *testing.T) {
			var log records
			opts := quick(mcptool.Options{Logger: log.logger()})
			e := open(t, opts, start(t, "strange lists"))
			if got, want := names(e), []string{"raw__echo", "raw__get_prompt", "raw__loud", "raw__read_resource"}; !slices.Equal(got, want) {
				t.Fatalf("the tools are %v, want %v", got, want)
			}
			s := e.Servers()[0]
			if len(s.Left) != 3 || !strings.Contains(s.Left[2].Error(), `tool "odd": its input schema is not an object`) {
				t.Errorf("left out: %v", s.Left)
			}
			for _, one := range s.Tools {
				if one.Destructive != (one.Original == "loud") {
					t.Errorf("destructive is %t for %s: a tool whose annotations cannot be read may destroy something", one.Destructive, one.Original)
				}
			}
			for _, test := range []struct{ tool, input, want string }{
				{"raw__read_resource", `{}`, "- note://1 (one)\n- note://{id} (notes)"},
				{"raw__read_resource", `{"uri":"note://1"}`, "[resource ]\n" + unread("null") + "\n[resource note://1]\nfine\n[resource note://2]\n" + unread(`{"uri":"note://2","blob":"***"}`)},
				{"raw__get_prompt", `{}`, "- review: Reviews.\n- plain"},
				{"raw__get_prompt", `{"name":"review"}`, "[user]\n" + unread("null") + "\n\n[user]\n" + unread(`{"type":"hologram"}`) + "\n\n[user]\nsaid"},
			} {
				if r := call(t, e, test.tool, test.input); r.IsError || r.Text != test.want {
					t.Errorf("%s %s: the result is %+v, want %q", test.tool, test.input, r, test.want)
				}
			}
			nothing := open(t, opts, start(t, "lists of nothing"))
			for _, test := range []struct{ tool, input, want string }{
				{"raw__read_resource", `{}`, "This server currently has no resources."},
				{"raw__read_resource", `{"uri":"note://1"}`, "[resource ]\n" + unread("null")},
				{"raw__get_prompt", `{}`, "This server currently has no prompts."},
				{"raw__get_prompt", `{"name":"review"}`, "[user]\n" + unread("null")},
			} {
				if r := call(t, nothing, test.tool, test.input); r.IsError || r.Text != test.want {
					t.Errorf("%s %s: the result is %+v, want %q", test.tool, test.input, r, test.want)
				}
			}
			none := open(t, opts, start(t, "unreadable lists"))
			for _, test := range []struct{ tool, input string }{
				{"raw__read_resource", `{}`}, {"raw__read_resource", `{"uri":"note://1"}`}, {"raw__get_prompt", `{}`}, {"raw__get_prompt", `{"name":"review"}`},
			} {
				if r := call(t, none, test.tool, test.input); r.Class != belay.ClassFailed || r.Text != noResult {
					t.Errorf("%s %s: the result is %+v, want %q", test.tool, test.input, r, noResult)
				}
			}
			for _, one := range []*mcptool.Extension{e, none} {
				if s := one.Servers()[0]; s.State != mcptool.StateReady || strings.Contains(log.String(), "not available") {
					t.Errorf("the server is %s: %v\n%s", s.State, s.Err, log.String())
				}
			}
		})
	}
}

// Belay ignores notifications that it cannot read, and answers without a request.
//
// SPEC E-09
func TestOddNotifications(t *testing.T) {
	t.Parallel()
	var log records
	e := open(t, quick(mcptool.Options{Logger: log.logger()}), child(t, "raw", "raw odd notifications", nil))
	for range 2 {
		if r := call(t, e, "raw__echo", `{}`); r.IsError || r.Text != "echoed" {
			t.Errorf("it answered %+v", r)
		}
	}
	if strings.Contains(log.String(), "not available") {
		t.Errorf("the server was down:\n%s", log.String())
	}
}

// If a server of the newest protocol always asks for more input, its call fails. The
// server stays up.
//
// SPEC E-09
func TestAServerThatAsksWithoutEnd(t *testing.T) {
	t.Parallel()
	var log records
	e := open(t, quick(mcptool.Options{Logger: log.logger()}), child(t, "raw", "raw asks without end", nil))
	if r := call(t, e, "raw__echo", `{}`); r.Class != belay.ClassFailed || !strings.Contains(r.Text, "keeps asking for more input") {
		t.Errorf("the result is %+v", r)
	}
	if s := e.Servers()[0]; s.State != mcptool.StateReady || strings.Contains(log.String(), "not available") {
		t.Errorf("the server is %s: %v\n%s", s.State, s.Err, log.String())
	}
}

// Belay declines a question that it cannot ask. No question shows a secret of the server.
//
// SPEC E-09, C-11
func TestQuestionsOfRawServers(t *testing.T) {
	t.Parallel()
	for how, test := range map[string]struct {
		answers []string
		want    string // a part of the answer that the server gets
	}{
		"asks for an address": {nil, `"action":"decline"`},
		"asks with a secret":  {[]string{"b"}, `"content":{"s":"b"}`},
		"asks for too much":   {nil, "more than 20 properties"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			opts := quick(mcptool.Options{Environ: append(os.Environ(), "PASSWORD=hunter-2-hunter")})
			e := open(t, opts, child(t, "raw", "raw "+how, map[string]string{"SECRET": "${PASSWORD}"}))
			p := &person{answers: test.answers}
			asked := requests(t, e, belay.Options{Asker: p}, scripted.Call{Tool: "raw__echo", Input: `{}`})
			if got := asked[1].Messages[len(asked[1].Messages)-1].Parts[0].Result.Text; !strings.Contains(got, test.want) {
				t.Errorf("the server was answered %s, want %s", got, test.want)
			}
			if len(p.asked) != len(test.answers) {
				t.Errorf("the user was asked %d times, want %d", len(p.asked), len(test.answers))
			}
			for _, question := range p.asked {
				if strings.Contains(question.Text, "hunt") || strings.Count(question.Text, "[REDACTED]") != 3 {
					t.Errorf("the question has a secret: %s", question.Text)
				}
			}
		})
	}
}

// No log, status or list of missing servers contains a secret from a server's
// declaration, whatever a failing server prints.
//
// SPEC E-09, C-11, J-02
func TestSecretsOfFailingServersAreNotLogged(t *testing.T) { //nolint:paralleltest // see TestHTTP
	const down, secret = "mcp server is not available", `hunter-2"hunter/3&hunter`
	raw := func(kind, value string) func(t *testing.T) mcptool.Server {
		return func(t *testing.T) mcptool.Server {
			t.Helper()
			return child(t, "raw", "raw "+kind, map[string]string{"SECRET": value, "API_KEY": value})
		}
	}
	web := func(headers map[string]string, query string) func(t *testing.T) mcptool.Server {
		return func(t *testing.T) mcptool.Server {
			t.Helper()
			s := serveRawHTTP(t, "leaks what it was sent")
			s.Headers = headers
			s.URL += query
			return s
		}
	}
	for rule, test := range map[string]struct { //nolint:paralleltest // likewise
		server func(t *testing.T) mcptool.Server
		log    string // a part of the expected log
	}{
		"a refused handshake":               {raw("leaks in the handshake", "${PASSWORD}"), down},
		"a secret that is escaped":          {raw("leaks it escaped", "${PASSWORD}"), down},
		"what looks like a secret":          {raw("leaks a token of its own", "${PASSWORD}"), down},
		"a refused list of tools":           {raw("leaks when it lists", "${PASSWORD}"), down},
		"a later list of tools":             {raw("leaks when it lists again", "${PASSWORD}"), "mcp server does not list its tools"},
		"a tool that is left out":           {raw("leaks in the name of a tool", "${PASSWORD2}"), "mcp tool is left out"},
		"a secret that the declaration has": {raw("leaks in the handshake", "hunter-literal"), down},
		"a header":                          {web(map[string]string{"X-Any": "${PASSWORD2}"}, ""), down},
		"a header that the declaration has": {web(map[string]string{"Authorization": "Bearer hunter-literal"}, ""), down},
		"a parameter of the address":        {web(nil, "?apiKey=hunter-literal"), down},
		"a parameter, where nobody listens": {func(t *testing.T) mcptool.Server {
			t.Helper()
			return mcptool.Server{Name: "raw", URL: "http://127.0.0.1:1/?token=hunter-literal"}
		}, down},
		"what prepares the start of a child": {func(t *testing.T) mcptool.Server {
			t.Helper()
			s := raw("any", "${PASSWORD}")(t)
			s.Prepare = func(context.Context, []string) ([]string, error) { return nil, errors.New("cannot use " + secret) }
			return s
		}, down},
	} {
		t.Run(rule, func(t *testing.T) {
			log := new(records)
			environ := append(os.Environ(), "PASSWORD="+secret, "PASSWORD2=hunter-4-hunter")
			server := test.server(t)
			server.Required = true
			e := open(t, quick(mcptool.Options{Backoff: time.Hour, Logger: slog.New(slog.NewJSONHandler(log, nil)), Environ: environ}), server)
			for began := time.Now(); !strings.Contains(log.String(), test.log); time.Sleep(time.Millisecond) {
				if time.Since(began) > patience {
					t.Fatalf("the log does not say %q:\n%s", test.log, log.String())
				}
			}
			told := map[string]string{"missing servers": fmt.Sprint(e.Missing())}
			for _, s := range e.Servers() {
				told["status"] = fmt.Sprint(s.Err, s.Left)
			}
			shut(t, e) // the log is complete after this
			told["log"] = log.String()
			for what, text := range told {
				if strings.Contains(text, "hunt") {
					t.Errorf("the %s has a part of a secret: %s", what, text)
				}
			}
			if !strings.Contains(told["log"], "[REDACTED]") {
				t.Errorf("the log has no mark where the secret was: %s", told["log"])
			}
		})
	}
}

// When a server has ended, neither the result of the call nor the prompt shows a secret.
//
// SPEC E-09, C-11
func TestSecretsAreNotShownToTheModel(t *testing.T) { //nolint:paralleltest // see TestHTTP
	web := serveRawHTTP(t, "drops calls")
	web.URL += "?apiKey=hunter-literal"
	e := open(t, quick(mcptool.Options{Backoff: time.Hour}), web)
	if r := call(t, e, "raw__echo", `{}`); r.Class != belay.ClassUnavailable || !strings.Contains(r.Text, "apiKey=[REDACTED]") || strings.Contains(r.Text, "hunt") {
		t.Errorf("the result is %+v", r)
	}
	opts := quick(mcptool.Options{Environ: append(os.Environ(), "PASSWORD=hunter-2-hunter")})
	e = open(t, opts, child(t, "raw", "raw leaks in its instructions", map[string]string{"SECRET": "${PASSWORD}"}))
	if prompt := requests(t, e, belay.Options{})[0].System; !strings.Contains(prompt, "Log in with [REDACTED].") || strings.Contains(prompt, "hunt") {
		t.Errorf("the prompt is %s", prompt)
	}
}

// A server that exits during the handshake is started only once. A server that knows only
// the newer handshake is started twice at first, and once at each later restart.
//
// SPEC E-09
func TestAHandshakeIsNotTriedWithoutNeed(t *testing.T) {
	t.Parallel()
	desk := newDesk(t)
	roll := map[string]string{rollVariable: desk.addr}
	e := open(t, quick(mcptool.Options{Backoff: time.Hour}), child(t, "raw", "raw exits on initialize", roll))
	await(t, e, "raw", inState(mcptool.StateDown))
	desk.next()
	desk.none()
	e = open(t, quick(mcptool.Options{}), child(t, "raw", "raw knows discover alone", roll))
	await(t, e, "raw", inState(mcptool.StateReady))
	desk.next()
	desk.next()
	if r := call(t, e, "raw__echo", `{"text":"die"}`); r.Class != belay.ClassUnavailable {
		t.Errorf("the result is %+v", r)
	}
	desk.next()
	await(t, e, "raw", inState(mcptool.StateReady))
	desk.none()
}

// A list with too many resources is cut, and the result says so.
//
// SPEC E-09
func TestListsOfResourcesAreBounded(t *testing.T) { //nolint:paralleltest // see TestHTTP
	s := shelf()
	for i := range 300 {
		s.AddResource(&mcp.Resource{URI: fmt.Sprintf("note://x/%d", i), Name: "x", Description: strings.Repeat("word ", 200)}, nil)
		s.AddPrompt(&mcp.Prompt{Name: fmt.Sprintf("x%d", i)}, nil)
	}
	e := open(t, quick(mcptool.Options{}), serveSDK(t, "shelf", s))
	for _, tool := range []string{"shelf__read_resource", "shelf__get_prompt"} {
		lines := strings.Split(call(t, e, tool, `{}`).Text, "\n")
		if len(lines) != 201 || lines[200] != "There are more than 200 entries. The other entries are not listed." {
			t.Errorf("%s: there are %d lines, the last is %q", tool, len(lines), lines[len(lines)-1])
		}
		for _, line := range lines {
			if len(line) > 600 {
				t.Errorf("%s: a line has %d bytes", tool, len(line))
			}
		}
	}
}

// A call that times out has the class timeout. The server stays up.
//
// SPEC T-04, E-09
func TestCallsThatRunOutOfTime(t *testing.T) { //nolint:paralleltest // see TestHTTP
	waits := func() *mcp.Server {
		s := shelf()
		mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ words) (*mcp.CallToolResult, any, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		})
		s.AddResource(&mcp.Resource{URI: "note://slow", Name: "slow"}, func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		s.AddPrompt(&mcp.Prompt{Name: "slow"}, func(ctx context.Context, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		return s
	}
	e := open(t, quick(mcptool.Options{}), serveSDK(t, "web", waits()), child(t, "pipe", "tools", nil), serveSDK(t, "pizza", curious()))
	for rule, test := range map[string]struct{ tool, input string }{
		"a tool at an address":   {"web__wait", `{}`},
		"a tool of a program":    {"pipe__wait", `{"text":"127.0.0.1:1"}`},
		"a resource":             {"web__read_resource", `{"uri":"note://slow"}`},
		"a prompt":               {"web__get_prompt", `{"name":"slow"}`},
		"a question to the user": {"pizza__order", `{"text":"{\"type\":\"object\",\"properties\":{}}"}`},
	} {
		t.Run(rule, func(t *testing.T) {
			opts := belay.Options{Limits: belay.Limits{Tool: 50 * time.Millisecond}, Asker: new(person)}
			asked := requests(t, e, opts, scripted.Call{Tool: test.tool, Input: test.input})
			r := asked[1].Messages[len(asked[1].Messages)-1].Parts[0].Result
			if r.Class != belay.ClassTimeout || !r.IsError || !strings.Contains(r.Text, "did not return within 50ms") {
				t.Errorf("the result is %+v, want class timeout", r)
			}
		})
	}
	for _, s := range e.Servers() { //nolint:paralleltest // likewise
		if s.State != mcptool.StateReady {
			t.Errorf("server %s is %s: %v", s.Server.Name, s.State, s.Err)
		}
	}
}
