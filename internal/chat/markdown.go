package chat

import (
	"strings"

	"charm.land/glamour/v2"
	gansi "charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay/internal/visible"
)

// markdown renders blocks of text. It makes its renderers when it first needs them.
type markdown struct {
	profile  colorprofile.Profile
	light    bool
	width    int
	renderer *glamour.TermRenderer // for text; wraps lines
	code     *glamour.TermRenderer // for code; does not wrap lines

	last  string // the last block, and its lines in lined
	lined []string
}

// fit sets the width and style of the renderer.
func (md *markdown) fit(width int, light bool) {
	if width != md.width || light != md.light {
		*md = markdown{profile: md.profile, width: width, light: light}
	}
}

// lines renders a block as lines of at most md.width columns, without blank lines around
// it. It shows text that cannot be rendered unchanged.
func (md *markdown) lines(text string) []string {
	if text == md.last && text != "" {
		return md.lined
	}
	md.last = text
	text = visible.Clean(text)
	out, err := md.render(text)
	if err != nil {
		out = text
	}
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		lines[i] = trimRight(line)
	}
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	md.lined = hardWrapped(lines, md.width)
	return md.lined
}

func (md *markdown) render(text string) (string, error) {
	renderer, width := &md.renderer, md.width
	if fenceOf(strings.TrimSpace(firstLine(text))) != "" {
		renderer, width = &md.code, 0
	} else {
		text = literal(tight(text))
	}
	if *renderer == nil {
		r, err := glamour.NewTermRenderer(glamour.WithStyles(md.style()), glamour.WithWordWrap(width), glamour.WithPreservedNewLines())
		if err != nil {
			return "", err //nolint:wrapcheck // the text is shown plain then
		}
		*renderer = r
	}
	return (*renderer).Render(text) //nolint:wrapcheck // likewise
}

// literal escapes everything outside code that looks like an HTML tag, because the renderer
// would leave tags out.
func literal(text string) string {
	var b strings.Builder
	fence, span := "", 0 // the marks that opened the code around the current line, if any
	for line := range strings.SplitAfterSeq(text, "\n") {
		bare := strings.TrimSpace(line)
		mark := fenceOf(bare)
		switch {
		case fence != "":
			if closes(bare, fence) {
				fence = ""
			}
			b.WriteString(line)
			continue
		case mark != "" && span == 0:
			fence = mark
			b.WriteString(line)
			continue
		case bare == "":
			span = 0
		}
		span = escaped(&b, line, span)
	}
	return b.String()
}

// tight removes blank lines inside the items of a list. The renderer would join the
// paragraphs around such a line without a space.
func tight(text string) string {
	if first := firstLine(text); strings.TrimSpace(first) == "" || !itemish(first) {
		return text
	}
	var kept []string
	gap := 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			gap++
			continue
		}
		if gap > 0 && (!indents(line) || itemish(line) || fenceOf(strings.TrimSpace(line)) != "") {
			kept = append(kept, "")
		}
		gap = 0
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// escaped writes a line with a backslash before each tag outside code. span is how many
// backticks opened the code span that the line begins in. escaped returns the same for the
// next line.
func escaped(b *strings.Builder, line string, span int) int {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '`':
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			b.WriteString(line[i : i+n])
			i += n - 1
			switch span {
			case 0:
				span = n
			case n:
				span = 0
			}
		case c == '<' && span == 0 && (i == 0 || line[i-1] != '\\'):
			b.WriteString(`\<`)
		default:
			b.WriteByte(c)
		}
	}
	return span
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
	return line
}

// style returns glamour's style for a light or dark background, without margins. Plain text
// has no colour, so that it gets the terminal's own.
func (md *markdown) style() gansi.StyleConfig {
	style := styles.DarkStyleConfig
	if md.light {
		style = styles.LightStyleConfig
	}
	none := uint(0)
	style.Document = gansi.StyleBlock{Margin: &none}
	style.H1.Prefix, style.H1.Suffix = "# ", ""
	style.H1.Color, style.H1.BackgroundColor = style.Heading.Color, nil
	style.Code.Prefix, style.Code.Suffix, style.Code.BackgroundColor = "", "", nil
	style.HorizontalRule.Format = "\n────────\n"
	if md.profile <= colorprofile.ASCII { // without colours, backticks mark code
		style.Code.Prefix, style.Code.Suffix = "`", "`"
		style.CodeBlock.Chroma = nil
	}
	return style
}

// trimRight removes spaces at the end of a line, even if they have a style.
func trimRight(line string) string {
	bare := ansi.Strip(line)
	kept := strings.TrimRight(bare, " ")
	switch {
	case kept == "":
		return ""
	case len(kept) == len(bare):
		return line
	}
	cut := ansi.Truncate(line, ansi.StringWidth(kept), "")
	if strings.Contains(cut, "\x1b") {
		cut += ansi.ResetStyle
	}
	return cut
}

// hardWrapped breaks lines that are too wide, even inside words.
func hardWrapped(lines []string, width int) []string {
	var out []string
	for _, line := range lines {
		if ansi.StringWidth(line) > width {
			out = append(out, strings.Split(ansi.Hardwrap(line, max(width, 1), true), "\n")...)
		} else {
			out = append(out, line)
		}
	}
	return out
}
