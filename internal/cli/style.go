package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay/internal/visible"
)

// style adds colours to text. If style is false, the text stays unchanged. style uses the
// palette of the terminal, so that the colours suit light and dark backgrounds.
type style bool

func (s style) sgr(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) dim(text string) string    { return s.sgr("2", text) }
func (s style) bold(text string) string   { return s.sgr("1", text) }
func (s style) red(text string) string    { return s.sgr("31", text) }
func (s style) green(text string) string  { return s.sgr("32", text) }
func (s style) yellow(text string) string { return s.sgr("33", text) }
func (s style) cyan(text string) string   { return s.sgr("36", text) }

// oneLine joins a text to one line and makes control characters visible.
func oneLine(text string) string { return visible.OneLine(text) }

// short cuts a line to a width in terminal cells.
func short(text string, width int) string { return ansi.Truncate(text, max(width, 1), "…") }

// padded adds spaces until a text has a width in terminal cells.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// table prints rows in aligned columns.
type table struct {
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the rows. If head is not nil, it formats the first row.
func (t *table) write(w io.Writer, head func(string) string) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	var b strings.Builder
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(padded(cell, widths[i]))
		}
		text := strings.TrimRight(line.String(), " ")
		if n == 0 && head != nil {
			text = head(text)
		}
		b.WriteString(text + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// took formats a duration for people.
func took(d time.Duration) string { return visible.Took(d) }

// ago formats how much time has passed, such as "5m ago".
func ago(now, then time.Time) string {
	switch d := now.Sub(then); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	case d < 30*24*time.Hour:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	default:
		return then.Local().Format(time.DateOnly)
	}
}

// dollars formats a cost, such as "$0.12", or "-" for zero.
func dollars(cost float64) string {
	switch {
	case cost == 0:
		return "-"
	case cost < 0.01:
		return fmt.Sprintf("$%.4f", cost)
	default:
		return fmt.Sprintf("$%.2f", cost)
	}
}
