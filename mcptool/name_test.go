package mcptool_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/mcptool"
)

// SPEC E-09
func TestToolName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ server, tool, want string }{
		{"github", "create_issue", "github__create_issue"},
		{"my-files", "read.file", "my-files__read-0x2e-file"},
		{"Two Words", "a/b", "Two-0x20-Words__a-0x2f-b"},
		{"a__b", "c", "a-0x5f-_b__c"},
		{"a", "b__c", "a__b__c"},
		{"a_", "b", "a-0x5f-__b"},
		{"a", "_b", "a___b"},
		{"a", "x-0x2e-", "a__x-0x2d-0x2e-"},
	} {
		if got := mcptool.ToolName(test.server, test.tool); got != test.want {
			t.Errorf("ToolName(%q, %q) = %q, want %q", test.server, test.tool, got, test.want)
		}
	}
	long := mcptool.ToolName("server", strings.Repeat("x", 200))
	if other := mcptool.ToolName("server", strings.Repeat("x", 201)); len(long) != 128 || long == other {
		t.Errorf("long names: %q and %q, want 128 characters, and two", long, other)
	}
	for _, name := range []string{"read", long, "a__b-0xzz-", "a__b-0x61-"} {
		if server, tool, ok := mcptool.SplitName(name); ok {
			t.Errorf("SplitName(%q) = %q, %q, want that it is none", name, server, tool)
		}
	}
}

// ToolName is reversible: the server and the tool can be found again, whatever their
// names.
//
// SPEC E-03, E-09
func TestToolNamesAreReversible(t *testing.T) {
	t.Parallel()
	fits := regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	word := rapid.OneOf(rapid.StringMatching(`[-_0xz.a]{1,12}`), rapid.StringN(1, 12, 40))
	rapid.Check(t, func(t *rapid.T) {
		server, tool := word.Draw(t, "server"), word.Draw(t, "tool")
		name := mcptool.ToolName(server, tool)
		if !fits.MatchString(name) {
			t.Fatalf("ToolName(%q, %q) = %q, which no agent takes", server, tool, name)
		}
		if len(name) == 128 {
			return // the name may have been cut
		}
		if s, o, ok := mcptool.SplitName(name); !ok || s != server || o != tool {
			t.Fatalf("SplitName(%q) = %q, %q, %t, want %q, %q", name, s, o, ok, server, tool)
		}
	})
}
