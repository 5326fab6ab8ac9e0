package chat

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// style is how text looks. The colour is the number of one of the terminal's sixteen
// colours, plus 1. Zero means the terminal's own colour.
type style struct {
	colour                                 uint8
	bold, faint, italic, underline, strike bool
}

// over returns base with all properties that s sets.
func (s style) over(base style) style {
	if s.colour != 0 {
		base.colour = s.colour
	}
	base.bold = base.bold || s.bold
	base.faint = base.faint || s.faint
	base.italic = base.italic || s.italic
	base.underline = base.underline || s.underline
	base.strike = base.strike || s.strike
	return base
}

// render returns a text in this style.
func (s style) render(text string) string {
	if s == (style{}) || text == "" {
		return text
	}
	var codes ansi.Style
	if s.bold {
		codes = codes.Bold()
	}
	if s.faint {
		codes = codes.Faint()
	}
	if s.italic {
		codes = codes.Italic(true)
	}
	if s.underline {
		codes = codes.Underline(true)
	}
	if s.strike {
		codes = codes.Strikethrough(true)
	}
	if s.colour != 0 {
		codes = codes.ForegroundColor(ansi.BasicColor(s.colour - 1))
	}
	return codes.Styled(text)
}

// colours are the styles of rendered Markdown.
type colours struct {
	heading, code, link, quiet         style
	keyword, quoted, number            style
	commented, added, removed, section style
}

// coloursFor returns the styles for a light or a dark background. They use the terminal's
// sixteen colours; the bright ones are too pale for a light background.
func coloursFor(light bool) colours {
	bright := uint8(8)
	if light {
		bright = 0
	}
	colour := func(n uint8) style { return style{colour: 1 + n + bright} }
	c := colours{
		heading: colour(4), code: colour(6), link: colour(4), quiet: style{faint: true},
		keyword: colour(5), quoted: colour(2), number: colour(6), commented: style{faint: true, italic: true},
		added: colour(2), removed: colour(1), section: colour(6),
	}
	c.heading.bold, c.link.underline = true, true
	return c
}

// span is text in one style.
type span struct {
	text  string
	style style
}

// line is a line of text.
type line []span

func (l line) blank() bool { return l.String() == "" }

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += ansi.StringWidth(s.text)
	}
	return n
}

// with appends text to the line, as append does.
func (l line) with(text string, s style) line {
	if last := len(l) - 1; last >= 0 && l[last].style == s {
		l[last].text += text
		return l
	}
	return append(l, span{text, s})
}

// isLong reports whether the last span has many bytes. This happens with characters that
// have no width. Then the line must end, because appending to a long text copies the
// text.
func (l line) isLong() bool { return len(l) > 0 && len(l[len(l)-1].text) > 4096 }

// String returns the line for a terminal, without spaces at its end. The result ends with
// the terminal's own style, because lines can be cut or scroll away.
func (l line) String() string {
	var joined line
	for _, s := range l {
		joined = joined.with(s.text, s.style)
	}
	for len(joined) > 0 {
		last := &joined[len(joined)-1]
		if last.text = strings.TrimRight(last.text, " "); last.text != "" {
			break
		}
		joined = joined[:len(joined)-1]
	}
	var b strings.Builder
	for _, s := range joined {
		b.WriteString(s.style.render(s.text))
	}
	return b.String()
}

// clusters calls yield for each grapheme cluster of the spans, which is what a user sees as
// one character. It passes the width and the style too.
func clusters(spans []span, yield func(text string, width int, s style)) {
	for _, s := range spans {
		for rest := s.text; rest != ""; {
			text, width := rest[:1], 1
			if rest[0] == '\n' {
				width = 0
			} else if len(rest) > 1 && rest[1] >= 0x80 || rest[0] >= 0x80 {
				text, width = ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
			}
			yield(text, width, s.style)
			rest = rest[len(text):]
		}
	}
}

// wrapper breaks text into lines between words.
type wrapper struct {
	width int
	lines []line
	at    line // the current line
	used  int  // its width

	gap       line // spaces after the current line, which are kept if a word follows
	gapWidth  int
	word      line // the current word
	wordWidth int
}

// wrap breaks text into lines of at most width columns. It breaks between words, and
// around wide characters: scripts with wide characters use no spaces. It breaks a word
// only if the word is wider than a line.
func wrap(spans []span, width int) []line {
	w := wrapper{width: width}
	clusters(spans, func(text string, width int, s style) {
		switch {
		case text == "\n":
			w.endWord()
			w.endLine()
		case text == " ":
			w.endWord()
			w.gap = w.gap.with(text, s)
			w.gapWidth++
		case width > 1:
			w.endWord()
			w.word = w.word.with(text, s)
			w.wordWidth += width
			w.endWord()
		default:
			if w.wordWidth+width > w.width || w.word.isLong() {
				w.breakWord()
			}
			w.word = w.word.with(text, s)
			w.wordWidth += width
		}
	})
	w.endWord()
	w.endLine()
	return w.lines
}

// endWord adds the current word to the current line, or to a new one.
func (w *wrapper) endWord() {
	if len(w.word) == 0 {
		return
	}
	if w.used > 0 && w.used+w.gapWidth+w.wordWidth > w.width {
		w.endLine()
	}
	if w.used > 0 {
		w.at = append(w.at, w.gap...)
		w.used += w.gapWidth
	}
	w.gap, w.gapWidth = nil, 0
	w.at = append(w.at, w.word...)
	w.used += w.wordWidth
	w.word, w.wordWidth = nil, 0
}

// breakWord makes a line of the word so far, because the word is wider than a line.
func (w *wrapper) breakWord() {
	if w.used > 0 {
		w.endLine()
	}
	w.endWord()
	w.endLine()
}

func (w *wrapper) endLine() {
	w.lines = append(w.lines, w.at)
	w.at, w.used = nil, 0
	w.gap, w.gapWidth = nil, 0
}

// chop breaks text into lines of at most width columns, at any character.
func chop(spans []span, width int) []line {
	var lines []line
	var at line
	used := 0
	clusters(spans, func(text string, w int, s style) {
		if text == "\n" || used > 0 && used+w > width || at.isLong() {
			lines = append(lines, at)
			at, used = nil, 0
		}
		if text != "\n" {
			at = at.with(text, s)
			used += w
		}
	})
	return append(lines, at)
}
