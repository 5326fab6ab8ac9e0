package console

import "strings"

// tracePath returns the address of the page that shows a trace, or "" if there is none.
func (v *visit) tracePath(trace string) string {
	if trace == "" || v.console.traceURL == "" {
		return ""
	}
	return strings.ReplaceAll(v.console.traceURL, "{trace}", trace)
}
