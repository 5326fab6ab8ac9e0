package mcptool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay/mcptool"
)

// SPEC E-09
func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	text := `{
  "$schema": "https://example.com/mcp.json",
  "mcpServers": {
    "files": {
      "command": "npx", "args": ["-y", "server-files", "/srv"],
      "env": {"TOKEN": "${FILES_TOKEN}", "MODE": "ro"},
      "cwd": "work",
      "description": "for people"
    },
    "own": {"type": "stdio", "command": "./bin/server", "tools": ["read_*"], "disabled": true},
    "web": {
      "type": "streamable-http",
      "url": "https://mcp.example.com/v1",
      "headers": {"Authorization": "Bearer ${WEB_TOKEN:-none}"},
      "autoApprove": ["*"]
    },
    "here": {"url": "http://127.0.0.1:8000/mcp", "tools": []}
  }
}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := mcptool.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []mcptool.Server{
		{
			Name: "files", Command: "npx", Args: []string{"-y", "server-files", "/srv"}, Env: map[string]string{"TOKEN": "${FILES_TOKEN}", "MODE": "ro"},
			Dir: filepath.Join(dir, "work"), File: file, Line: 4,
		},
		{Name: "own", Command: filepath.Join(dir, "bin", "server"), Tools: []string{"read_*"}, Disabled: true, File: file, Line: 10},
		{Name: "web", URL: "https://mcp.example.com/v1", Headers: map[string]string{"Authorization": "Bearer ${WEB_TOKEN:-none}"}, File: file, Line: 11},
		{Name: "here", URL: "http://127.0.0.1:8000/mcp", Tools: []string{}, File: file, Line: 17},
	}
	if diff := cmp.Diff(want, config.Servers, cmpopts.EquateComparable()); diff != "" {
		t.Errorf("the servers (-want +got):\n%s", diff)
	}
	var warnings []string
	for _, w := range config.Warnings {
		warnings = append(warnings, strings.TrimPrefix(w.Error(), file))
	}
	if diff := cmp.Diff([]string{
		`:2: "$schema" is ignored`, `:8: server "files": "description" is ignored`, `:15: server "web": "autoApprove" is ignored: the floor's rules decide about approvals`,
	}, warnings); diff != "" {
		t.Errorf("the warnings (-want +got):\n%s", diff)
	}
}

// Every mistake is reported with its line and a suggestion, even if a file has several.
//
// SPEC E-09, W-04
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, text, want string }{
		{"it is JSON", "{\n\"mcpServers\": {", "mcp.json:2: it is not JSON: it ends too early"},
		{"it is an object", "[]", "mcp.json:1: the file is a list"},
		{"it has servers", "{}", "mcp.json:1: there is no mcpServers"},
		{"servers go by name", `{"mcpServers": []}`, "mcp.json:1: mcpServers is a list: it must be a mapping"},
		{"a key is known", "{\n\"mcpServer\": {}}", `mcp.json:2: unknown key "mcpServer" (did you mean "mcpServers"?)`},
		{"a key of a server is known", "{\"mcpServers\": {\"a\": {\n\"comand\": \"x\"}}}", `mcp.json:2: server "a": unknown key "comand" (did you mean "command"?)`},
		{"what would narrow a server is not read over", `{"mcpServers": {"a": {"command": "x", "excludeTools": ["rm"]}}}`, `server "a": unknown key "excludeTools"`},
		{"a key is there once", `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, `the key "a" occurs twice`},
		{"a server has a command or a url", `{"mcpServers": {"a": {}}}`, `mcp.json:1: server "a": the server has neither a command nor a url`},
		{"and not both", `{"mcpServers": {"a": {"command": "x", "url": "https://x"}}}`, "the server has a command and a url"},
		{"a url has no env", `{"mcpServers": {"a": {"env": {}, "url": "https://x"}}}`, "args, cwd and env are only for servers with a command"},
		{"a command has no headers", `{"mcpServers": {"a": {"headers": {}, "command": "x"}}}`, "headers are only for servers with a url"},
		{"a type is known", `{"mcpServers": {"a": {"type": "htp", "url": "https://x"}}}`, `unknown type "htp" (did you mean "http"?)`},
		{"sse is not spoken", `{"mcpServers": {"a": {"type": "sse", "url": "https://x"}}}`, "Belay does not support the type sse"},
		{"a type fits", `{"mcpServers": {"a": {"type": "stdio", "url": "https://x"}}}`, "the type is stdio, but the server has a url"},
		{"http goes to this machine alone", `{"mcpServers": {"a": {"url": "http://example.com/mcp"}}}`, "use https"},
		{"no secret in an address", `{"mcpServers": {"a": {"url": "https://me:secret@example.com/mcp"}}}`, "the URL contains a user name"},
		{"args are texts", `{"mcpServers": {"a": {"command": "x", "args": [1]}}}`, `server "a": args contains a number`},
		{"env is a mapping of texts", `{"mcpServers": {"a": {"command": "x", "env": {"A": true}}}}`, `"A" is true or false: it must be a text`},
		{"a variable has a name", `{"mcpServers": {"a": {"command": "x", "env": {"A": "${input:key}"}}}}`, "${input:key} is not a valid variable"},
		{"a variable ends", `{"mcpServers": {"a": {"command": "x", "env": {"A": "${B"}}}}`, "${ without }"},
		{"a pattern of tools can be read", `{"mcpServers": {"a": {"command": "x", "tools": ["["]}}}`, "tools"},
		{"a command is a text", `{"mcpServers": {"a": {"command": ["x"]}}}`, `server "a": command is a list: it must be a text`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			config, err := mcptool.Parse("mcp.json", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %q in it", err, test.want)
			}
			if len(config.Servers) > 0 && test.rule != "a key is there once" {
				t.Errorf("servers = %+v, want none", config.Servers)
			}
		})
	}
	config, err := mcptool.Parse("mcp.json", []byte(`{"mcpServers": {"bad": {}, "good": {"command": "x", "args": ["${HOME}"]}}}`))
	if err == nil || len(config.Servers) != 1 || config.Servers[0].Name != "good" || len(config.Warnings) != 1 || !strings.Contains(config.Warnings[0].Error(), "used as written") {
		t.Errorf("config = %+v, %v: want the good one, and a warning about what is not filled in", config, err)
	}
}
