//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const slowServer = `#!/bin/sh
while [ -e hold ]; do sleep 0.05; done
while read -r line; do
	id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	case "$line" in
	*'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"g","version":"1"}}' ;;
	*'"method":"tools/list"'*) result='{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}' ;;
	*'"method":"tools/call"'*) result='{"content":[{"type":"text","text":"hello there"}]}' ;;
	*'"method":"notifications/'*) continue ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}\n' "$id"; continue ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// A resumed turn waits for a server that it needs, even if the server starts slowly.
//
// SPEC E-09, P-08
func TestResumeWaitsForASlowServer(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"server.sh": slowServer,
		"m.json":    `{"mcpServers": {"g": {"command": "sh", "args": ["server.sh"]}}}`,
		"s.yaml": "follow_transcript: true\nsteps:\n  - calls: [{tool: g__greet, input: {}}]\n" +
			"  - expect: {results: [{tool: g__greet, text: hello there}]}\n    text: greeted\n",
	})
	_, stderr, code := belay(t, dir, "run", "--mcp", "m.json", "--model", "scripted/s.yaml", "--as", "first", "greet")
	id := regexp.MustCompile(`ap-[a-z0-9]+`).FindString(stderr)
	if code != 4 || id == "" {
		t.Fatalf("exit code %d, want that it parks:\n%s", code, stderr)
	}
	if _, stderr, code := belay(t, dir, "approvals", "approve", id); code != 0 {
		t.Fatal(stderr)
	}
	hold := filepath.Join(dir, "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, dir, "resume", "first", "--mcp", "m.json", "--model", "scripted/s.yaml")
	c.await(c.stderr, "waiting for MCP server g, whose tools the turn needs")
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	c.await(c.stdout, "greeted")
	if rest, code := c.ended(); code != 0 || !strings.Contains(rest, "g__greet") {
		t.Errorf("exit code %d:\n%s", code, rest)
	}
}
