package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/belay-run/belay/dialect"
)

// eventTable returns the table of a vendor's events: what Belay keeps, what differs and
// what it refuses.
func eventTable(v dialect.Vendor) string {
	var b strings.Builder
	b.WriteString("| event | phase | kept | differs | refused |\n|---|---|---|---|---|\n")
	for _, e := range v.Events() {
		phase := "none"
		if e.Phase != "" {
			phase = fmt.Sprintf("[%#q](hooks.md#%s)", e.Phase, strings.ReplaceAll(e.Phase, ".", ""))
		}
		fmt.Fprintf(&b, "| [`%s`](%s) | %s | %s | %s | %s |\n", e.Name, e.Source, phase, cmp.Or(e.Kept, "-"), cmp.Or(e.Differs, "-"), cmp.Or(e.Refused, "-"))
	}
	return b.String()
}

// toolTable returns the table of the names that a vendor's hooks see for Belay's tools.
func toolTable(v dialect.Vendor) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| Belay | %s |\n|---|---|\n", v.Title())
	for _, tool := range []string{"shell", "read", "write", "edit", "list", "glob", "grep", "invoke_subagent", "invoke_skill", "ask_user", "web_fetch", "web_search", "todo_write", "present_plan", "shell_output", "shell_stop", "SERVER__TOOL"} {
		names := v.Names(tool)
		if len(names) == 1 && names[0] == tool {
			names[0] += " (its own name)"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", tool, strings.Join(names, ", "))
	}
	return b.String()
}

// contractList returns the sources of what Belay knows about a vendor's hooks, and where they
// differ.
func contractList(v dialect.Vendor) string {
	var b strings.Builder
	c := v.Contract()
	for _, s := range c.Sources {
		fmt.Fprintf(&b, "- [%s of %s](%s), read in the version of %s\n", s.Title, v.Title(), s.Address, s.Date)
	}
	b.WriteString("\nWhere sources or behaviour differ:\n\n")
	for _, one := range c.Conflicts {
		fmt.Fprintf(&b, "- %s\n", one)
	}
	return b.String()
}
