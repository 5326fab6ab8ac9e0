package mcptool_test

import (
	"testing"

	"github.com/belay-run/belay/mcptool"
)

// Parse never panics, and every mistake has a line and a message.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"A": "${B:-c}"}, "cwd": "d"}}}`))
	f.Add([]byte(`{"mcpServers": {"a": {"type": "http", "url": "https://example.com", "headers": {"A": "b"}, "tools": ["c*"], "disabled": false}}}`))
	f.Add([]byte("{\"mcpServers\":\n[{}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, err := mcptool.Parse("mcp.json", text)
		if config == nil {
			t.Fatal("there is no config")
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range joined.Unwrap() {
				if fault, ok := one.(*mcptool.FaultError); !ok || fault.Line < 1 || fault.Message == "" { //nolint:errorlint // each is one by itself
					t.Errorf("a mistake without its place: %v", one)
				}
			}
		}
		for i := range config.Servers {
			if config.Servers[i].Line < 1 {
				t.Errorf("a server without its place: %+v", config.Servers[i])
			}
		}
	})
}
