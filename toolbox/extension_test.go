package toolbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/toolbox"
)

// The tools are an extension. They have an owner and a part of the prompt,
// Options.Resources restricts them, and they can be added and removed at any time.
//
// SPEC E-11
func TestExtension(t *testing.T) {
	t.Parallel()
	stock := toolbox.New(openRoot(t, t.TempDir()), nil)
	t.Run("prompt", func(t *testing.T) {
		t.Parallel()
		agent := belaytest.New(t, belaytest.Script(belaytest.Says("done")), &belay.Options{Extensions: []belay.Extension{stock}, Authorizer: permit.Off()})
		request := agent.Say("hello").Request(1)
		request.Offers("read", "list", "glob", "grep", "write", "edit", "shell")
		request.SystemSays("Paths of files are relative to the project. To look at files, use read, list, glob and grep, not shell commands. Read a file before you change it with write and edit.")
	})
	t.Run("scope", func(t *testing.T) {
		t.Parallel()
		agent := belaytest.New(t, belaytest.Script(belaytest.Says("done")), &belay.Options{
			Extensions: []belay.Extension{stock}, Resources: map[string][]string{"toolbox": {"read", "g*"}}, // these tools change nothing, so no Authorizer is needed
		})
		request := agent.Say("hello").Request(1)
		request.Offers("read", "glob", "grep")
		request.SystemSays("Paths of files are relative to the project.")
		request.SystemSays("Of the stock tools you may use only read, glob and grep.")
		for _, absent := range []string{"shell", "write"} {
			if strings.Contains(request.System, absent) {
				t.Errorf("the prompt mentions %s, which the agent may not use: %q", absent, request.System)
			}
		}
	})
	t.Run("owner", func(t *testing.T) {
		t.Parallel()
		_, err := belay.New(belaytest.Script(), &belay.Options{
			Extensions: []belay.Extension{stock}, Tools: []belay.Tool{belaytest.NewTool("grep")}, Authorizer: permit.Off(),
		})
		if err == nil || !strings.Contains(err.Error(), `extension "toolbox"`) {
			t.Errorf("two tools called grep: %v, want the owner named", err)
		}
	})
	t.Run("unchecked", func(t *testing.T) {
		t.Parallel()
		agent := belaytest.New(t, belaytest.Script(), nil)
		_, err := agent.Add(t.Context(), stock)
		if err == nil || !strings.Contains(err.Error(), "need a permission check: write, edit, shell") {
			t.Errorf("Add without an Authorizer: %v", err)
		}
	})
	t.Run("lease", func(t *testing.T) {
		t.Parallel()
		agent := belaytest.New(t, belaytest.Script(belaytest.Says("one"), belaytest.Says("two")), &belay.Options{Authorizer: permit.Off()})
		lease, err := agent.Add(t.Context(), stock.Only("read", "list"))
		if err != nil {
			t.Fatal(err)
		}
		agent.Say("hello").Request(1).Offers("read", "list")
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
		agent.Say("hello").Request(1).Offers()
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		if fragment, resources := stock.Only().Prompt(belay.AgentConfig{}); fragment != "" || resources != "" {
			t.Errorf("without tools the prompt is %q, %q", fragment, resources)
		}
		if fragment, _ := stock.Only("shell").Prompt(belay.AgentConfig{}); fragment != "" {
			t.Errorf("with the shell alone the prompt is %q", fragment)
		}
	})
}

// Extensions that Only returns share the record of which files a session has read. So write
// of one extension may overwrite a file that the session has read with another.
func TestOnlySharesWhatWasRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stock := toolbox.New(openRoot(t, dir), nil)
	call := func(tools *toolbox.Extension, input string) belay.Result {
		result, err := tools.Tools()[0].Call(t.Context(), &belay.Invocation{Session: "s", Input: []byte(input)})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if result := call(stock.Only("write"), `{"path": "a", "content": "new\n"}`); !result.IsError {
		t.Errorf("a file that was not read is overwritten: %+v", result)
	}
	call(stock.Only("read"), `{"path": "a"}`)
	if result := call(stock.Only("write"), `{"path": "a", "content": "new\n"}`); result.IsError {
		t.Errorf("a file that was read is not overwritten: %+v", result)
	}
}
