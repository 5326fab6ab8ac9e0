package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The help fits a terminal of 80 columns. It has no line breaks inside a paragraph, so
// that fang can wrap the text. No words are lost.
func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	a := newApp()
	root, before := a.root(), map[string]string{}
	var walk func(c *cobra.Command, visit func(*cobra.Command))
	walk = func(c *cobra.Command, visit func(*cobra.Command)) {
		visit(c)
		for _, sub := range c.Commands() {
			walk(sub, visit)
		}
	}
	walk(root, func(c *cobra.Command) { before[c.CommandPath()] = c.Long })
	unwrap(root)
	walk(root, func(c *cobra.Command) {
		if strings.Contains(strings.ReplaceAll(c.Long, "\n\n", ""), "\n") {
			t.Errorf("%s: a line break inside a paragraph:\n%s", c.CommandPath(), c.Long)
		}
		if was := before[c.CommandPath()]; !slices.Equal(strings.Fields(was), strings.Fields(c.Long)) {
			t.Errorf("%s: the words changed:\n%s\n%s", c.CommandPath(), was, c.Long)
		}
	})
	walk(root, func(c *cobra.Command) {
		for example := range strings.Lines(c.Example) {
			if example = strings.TrimSpace(example); len([]rune(example)) > 72 { // fang cuts longer examples in 80 columns
				t.Errorf("%s: this example does not fit: %s", c.CommandPath(), example)
			}
		}
	})
	if len(before) < 50 {
		t.Errorf("only %d commands were checked", len(before))
	}
}
