package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay"
)

// took formats a duration: 0.3s, 12s, 1m05s.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "0.0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	default:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
}

// count formats a number of tokens: 950, 1.2k, 34k, 1.2M.
func count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	default:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
}

// bill formats tokens and cost.
func bill(u belay.Usage) string {
	s := fmt.Sprintf("%s in, %s out", count(u.In+u.CacheRead+u.CacheWrite), count(u.Out))
	if u.Cost > 0 {
		s += fmt.Sprintf(" · $%.4f", u.Cost)
	}
	return s
}

// asTyped returns a message as the user typed it: !command is stored as a directive.
func asTyped(text string) string {
	if command, ok := strings.CutPrefix(text, "/"+shellDirective+" "); ok {
		return "!" + command
	}
	return text
}

// many returns a number and a noun in the right form.
func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// short returns a text as one line of at most width columns.
func short(text string, width int) string {
	return ansi.Truncate(strings.Join(strings.Fields(text), " "), max(width, 1), "…")
}

// wrapped breaks a text into lines of at most width columns. It breaks between words if
// possible.
func wrapped(text string, width int) []string {
	return strings.Split(ansi.Wrap(text, max(width, 1), ""), "\n")
}

// indented wraps a text. The first line begins with prefix, and the others are indented by
// the width of prefix.
func indented(text, prefix string, width int) []string {
	in := ansi.StringWidth(prefix)
	lines := wrapped(text, width-in)
	for i := range lines {
		if i == 0 {
			lines[i] = prefix + lines[i]
		} else {
			lines[i] = strings.Repeat(" ", in) + lines[i]
		}
	}
	return lines
}

// cutTo cuts a line to width columns.
func cutTo(line string, width int) string { return ansi.Truncate(line, max(width, 1), "…") }
