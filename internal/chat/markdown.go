package chat

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/colorprofile"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/belay-run/belay/internal/mdtable"
	"github.com/belay-run/belay/internal/visible"
)

// least is the smallest width of text inside a list or a quote. Deeper nested text is not
// indented further.
const least = 12

// markdown renders blocks of Markdown.
type markdown struct {
	profile colorprofile.Profile
	light   bool
	width   int

	last  string // the last block, and its lines in lined
	lined []string
}

// fit sets the width and style of the text.
func (md *markdown) fit(width int, light bool) {
	if width != md.width || light != md.light {
		*md = markdown{profile: md.profile, width: width, light: light}
	}
}

// lines renders a block as lines of at most md.width columns, without blank lines around
// it.
func (md *markdown) lines(block string) []string {
	if block == md.last && block != "" {
		return md.lined
	}
	md.last, md.lined = block, nil
	drawn := md.render(visible.Clean(block))
	for len(drawn) > 0 && drawn[0].blank() {
		drawn = drawn[1:]
	}
	for len(drawn) > 0 && drawn[len(drawn)-1].blank() {
		drawn = drawn[:len(drawn)-1]
	}
	for _, l := range drawn {
		md.lined = append(md.lined, l.String())
	}
	return md.lined
}

// render returns a block as lines.
func (md *markdown) render(block string) []line {
	p := page{source: []byte(block), plain: md.profile <= colorprofile.ASCII, colours: coloursFor(md.light)}
	return md.guarded(block, func() []line {
		return p.blocks(blockParser().Parse(text.NewReader(p.source)), max(md.width, 1), true)
	})
}

// guarded returns the lines that draw returns. If draw panics, it returns the text
// unchanged: a fault of the parser must not end the chat.
func (md *markdown) guarded(block string, draw func() []line) (lines []line) {
	defer func() {
		if recover() != nil {
			lines = wrap([]span{{text: block}}, max(md.width, 1))
		}
	}()
	return draw()
}

// blockParser returns the parser of blocks. It knows no HTML, so tags stay text. It knows
// no link definitions either: a definition and its use are often in different blocks, so
// both stay text.
var blockParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		inlineParsers(),
	)
})

// page is a text that is being rendered.
type page struct {
	source  []byte
	plain   bool // there are no colours, so backticks mark code
	colours colours
}

// blocks renders the children of a node. Blank lines separate them if apart is true.
func (p *page) blocks(parent ast.Node, width int, apart bool) []line {
	var lines []line
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		drawn := p.block(n, width)
		if apart && len(lines) > 0 && len(drawn) > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, drawn...)
	}
	return lines
}

func (p *page) block(n ast.Node, width int) []line {
	switch n := n.(type) {
	case *ast.Heading:
		spans := []span{{strings.Repeat("#", n.Level) + " ", p.colours.heading}}
		return wrap(p.inline(spans, n, p.colours.heading), width)
	case *ast.Paragraph, *ast.TextBlock:
		return p.paragraph(n, width)
	case *ast.ThematicBreak:
		return []line{{{strings.Repeat("─", min(8, width)), style{}}}}
	case *ast.FencedCodeBlock:
		return p.code(string(n.Language(p.source)), n, width)
	case *ast.CodeBlock:
		return p.code("", n, width)
	case *ast.Blockquote:
		bar := line{{"│ ", p.colours.quiet}}
		return nested(bar, bar, width, func(width int) []line { return p.blocks(n, width, true) })
	case *ast.List:
		return p.list(n, width)
	default:
		return p.blocks(n, width, true)
	}
}

// paragraph renders a paragraph. If it ends with a table, paragraph renders the table too.
func (p *page) paragraph(n ast.Node, width int) []line {
	segments := n.Lines().Sliced(0, n.Lines().Len())
	rows := make([]string, len(segments))
	for i := range segments {
		rows[i] = string(segments[i].Value(p.source))
	}
	t, ok := mdtable.In(rows)
	if !ok {
		return wrap(p.inline(nil, n, style{}), width)
	}
	var lines []line
	if t.Above > 0 {
		lines = append(wrap(p.text(strings.Join(rows[:t.Above], ""), style{}), width), nil)
	}
	return append(lines, p.table(&t, width)...)
}

// code renders code with an indent. A line that is too long continues on the next line.
func (p *page) code(language string, n ast.Node, width int) []line {
	source := strings.TrimSuffix(string(n.Lines().Value(p.source)), "\n")
	spans := []span{{text: source}}
	if !p.plain {
		spans = highlight(language, source, &p.colours)
	}
	indent := line{{"  ", style{}}}
	return nested(indent, indent, width, func(width int) []line { return chop(spans, width) })
}

func (p *page) list(n *ast.List, width int) []line {
	var lines []line
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		marker := "• "
		switch {
		case n.IsOrdered():
			marker = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		case p.task(item):
			marker = ""
		}
		if !n.IsTight && len(lines) > 0 {
			lines = append(lines, nil)
		}
		rest := strings.Repeat(" ", len([]rune(marker)))
		drawn := nested(line{{text: marker}}, line{{text: rest}}, width, func(width int) []line {
			return p.blocks(item, width, !n.IsTight)
		})
		lines = append(lines, drawn...)
	}
	return lines
}

// task reports whether an item begins with a check box. The box replaces the bullet.
func (p *page) task(item ast.Node) bool {
	first := item.FirstChild()
	if first == nil || first.Type() != ast.TypeBlock || first.Lines().Len() == 0 {
		return false
	}
	at := first.Lines().At(0)
	text := strings.ToLower(string(at.Value(p.source)))
	return strings.HasPrefix(text, "[ ] ") || strings.HasPrefix(text, "[x] ")
}

// nested puts a prefix before each line that draw returns: first before the first line, and
// rest before the others. If that leaves too little space, only the marker of an item stays,
// before the first line or above it.
func nested(first, rest line, width int, draw func(width int) []line) []line {
	inner := width - first.width()
	if inner >= min(least, width) {
		return prefixed(first, rest, draw(inner))
	}
	lines := draw(width)
	switch {
	case slices.Equal(first, rest):
		return lines
	case len(lines) > 0 && first.width()+lines[0].width() <= width:
		lines[0] = slices.Concat(first, lines[0])
		return lines
	}
	return append(wrap(first, width), lines...)
}

func prefixed(first, rest line, lines []line) []line {
	if len(lines) == 0 {
		return []line{first}
	}
	for i, l := range lines {
		prefix := rest
		if i == 0 {
			prefix = first
		}
		lines[i] = slices.Concat(prefix, l)
	}
	return lines
}
