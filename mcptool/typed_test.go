package mcptool_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

// bookcase is a server in this process with resources and prompts.
func bookcase(name string) mcptool.Server {
	return mcptool.Server{Name: name, Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		s := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
		for uri, content := range map[string]*mcp.ResourceContents{
			"note://1":     {Text: "buy milk"},
			"pic://cat":    {MIMEType: "image/png", Blob: []byte("PNG")},
			"note://empty": {Text: ""},
		} {
			s.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				one := *content
				one.URI = r.Params.URI
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&one}}, nil
			})
		}
		s.AddPrompt(&mcp.Prompt{Name: "review", Description: "Reviews a file.", Arguments: []*mcp.PromptArgument{{Name: "file", Required: true}, {Name: "style"}}},
			func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Review <" + r.Params.Arguments["file"] + "> as <" + r.Params.Arguments["style"] + ">."}}}}, nil
			})
		return s.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	}}
}

// A message can name resources and prompts of servers. Their content is stored before the
// message, and hooks and the floor check each read.
//
// SPEC E-09
func TestMessagesNameResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}), bookcase("shelf"))
	var many strings.Builder
	for i := range 21 {
		fmt.Fprintf(&many, "@shelf:note://%d ", i)
	}
	for _, test := range []struct {
		rule, text string
		opts       belay.Options
		want       []string // what the model gets before the message
		media      int
		fails      string
	}{
		{"a resource", "see (@shelf:note://1), please", belay.Options{}, []string{"buy milk"}, 0, ""},
		{"each resource once", "@shelf:note://1 @shelf:note://1 @shelf:note://empty.", belay.Options{}, []string{"buy milk", "note://empty"}, 0, ""},
		{"an image", "look at @shelf:pic://cat", belay.Options{}, []string{"pic://cat"}, 1, ""},
		{"an address of somebody else", "ask @bob:note://1 and shelf:note://1 and me@shelf:note://1", belay.Options{}, nil, 0, ""},
		{"a resource that does not exist", "@shelf:note://2", belay.Options{}, nil, 0, `@shelf:note://2: MCP server "shelf" answered`},
		{"too many", many.String(), belay.Options{}, nil, 0, "more than 20 resources"},
		{"a prompt with arguments in order", `/shelf:review "a b.go" very strict`, belay.Options{}, []string{"Review <a b.go> as <very strict>."}, 0, ""},
		{"a prompt with named arguments", `/shelf:review style=kind a.go`, belay.Options{}, []string{"Review <a.go> as <kind>."}, 0, ""},
		{"a prompt without a required argument", `/shelf:review`, belay.Options{}, nil, 0, "/shelf:review: the prompt needs the argument file"},
		{"a prompt that does not exist", `/shelf:other x`, belay.Options{}, nil, 0, ""},
		{"the floor decides", "@shelf:note://1", belay.Options{Authorizer: denyAll{}}, nil, 0, "@shelf:note://1: Denied by"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			model := &listening{Model: scripted.New([]scripted.Step{{Text: "done"}}, nil)}
			test.opts.Extensions = []belay.Extension{e.Shared()}
			agent, err := belay.New(model, &test.opts)
			if err != nil {
				t.Fatal(err)
			}
			_, err = agent.Session("s").Turn(t.Context(), test.text)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || len(model.asked) > 0 {
					t.Errorf("error = %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			messages := model.asked[0].Messages
			if len(messages) != len(test.want)+1 {
				t.Fatalf("%d messages: %+v", len(messages), messages)
			}
			media := 0
			for i, want := range test.want {
				if text := messages[i].Text(); !strings.Contains(text, want) {
					t.Errorf("message %d is %q, want %q", i, text, want)
				}
				for _, p := range messages[i].Parts {
					if p.Media != nil {
						media++
					}
				}
			}
			if media != test.media {
				t.Errorf("%d images, want %d", media, test.media)
			}
		})
	}
}

type denyAll struct{}

func (denyAll) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{Decision: belay.ToolDeny, By: "rule", Reason: "no"}, nil
}

// Users see the prompts among the names that they can type, and programs can list what a
// server offers.
//
// SPEC E-09
func TestWhatAServerOffersIsListed(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}), bookcase("shelf"))
	if !e.Binds("main", "shelf:review") || e.Binds("main", "shelf:other") || e.Binds("main", "review") {
		t.Error("the wrong names are bound")
	}
	names := e.TypedNames("main")
	if len(names) != 1 || names[0].Name != "shelf:review" || names[0].Description != "Reviews a file. <file> [style]" {
		t.Errorf("names = %+v", names)
	}
	prompts, err := e.Prompts(t.Context(), "shelf")
	if err != nil || len(prompts) != 1 || len(prompts[0].Arguments) != 2 {
		t.Errorf("prompts = %+v, %v", prompts, err)
	}
	resources, err := e.Resources(t.Context(), "shelf")
	if err != nil || len(resources) != 3 || !slices.ContainsFunc(resources, func(r mcptool.Resource) bool { return r.URI == "note://1" }) {
		t.Errorf("resources = %+v, %v", resources, err)
	}
	if _, err := e.Prompts(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), `there is no server "other"`) {
		t.Errorf("error = %v", err)
	}
}
