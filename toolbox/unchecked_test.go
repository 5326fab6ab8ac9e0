package toolbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

// brings is an extension with tools.
type brings struct {
	tools []belay.Tool
}

func (brings) Name() string          { return "brings" }
func (b brings) Tools() []belay.Tool { return b.tools }

type stepwise struct{ tools []belay.Tool }

func (b *stepwise) Name() string { return "stepwise" }

func (b *stepwise) StepTools(string) []belay.Tool { return b.tools }

// An agent without a permission check cannot have tools that write or run commands, in
// whatever way the agent gets them.
func TestDangerousToolsNeedAnAuthorizer(t *testing.T) {
	t.Parallel()
	all := toolbox.New(openRoot(t, t.TempDir()), nil).Tools()
	around := func(ctx context.Context, call *belay.Invocation, next func(context.Context, *belay.Invocation) (belay.Result, error)) (belay.Result, error) {
		return next(ctx, call)
	}
	wrapped := make([]belay.Tool, 0, len(all))
	for _, tool := range all {
		wrapped = append(wrapped, belay.WrapTool(tool, around))
	}
	for name, test := range map[string]struct {
		opts  belay.Options
		added []belay.Tool
		want  string // a part of the error; empty means no error
	}{
		"its own tools":             {belay.Options{Tools: all}, nil, "write, edit, shell;"},
		"wrapped tools":             {belay.Options{Tools: wrapped}, nil, "write, edit, shell;"},
		"tools of an extension":     {belay.Options{Extensions: []belay.Extension{brings{all}}}, nil, "write, edit, shell;"},
		"tools of each step":        {belay.Options{Extensions: []belay.Extension{&stepwise{all[4:5]}}}, nil, "write;"},
		"tools that come later":     {belay.Options{}, all, "write, edit, shell;"},
		"only tools that read":      {belay.Options{Tools: all[:4]}, nil, ""},
		"tools out of scope":        {belay.Options{Tools: all, Scope: []string{"read", "list"}}, nil, ""},
		"the caller says so":        {belay.Options{Tools: all, Authorizer: permit.Off()}, nil, ""},
		"later, the caller says so": {belay.Options{Authorizer: permit.Off()}, all, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, err := belay.New(scripted.New(nil, nil), &test.opts)
			if err == nil {
				_, err = agent.AddTools(test.added...)
				defer func() { _ = agent.Close(t.Context()) }()
			}
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && err == nil:
				t.Error("the tools were accepted")
			case test.want != "" && (!strings.Contains(err.Error(), test.want) || strings.Count(err.Error(), "permit.Off()") != 1):
				t.Errorf("the error is %q, want one with %q that names permit.Off() once", err, test.want)
			}
		})
	}
}
