package chat

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/belay-run/belay/internal/visible"
)

// inlineParsers returns the parsers of the text in blocks. There are none for HTML and
// for addresses in angle brackets, because such parsers would also match code such as
// <std::string>.
func inlineParsers() parser.Option { //nolint:ireturn // the library defines it
	return parser.WithInlineParsers(
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(strikethrough{}, 500),
	)
}

// textParser returns a parser of text without blocks.
var textParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 100)), inlineParsers())
})

// text renders Markdown text without blocks.
func (p *page) text(source string, base style) []span {
	part := page{source: []byte(source), plain: p.plain, colours: p.colours}
	var spans []span
	root := textParser().Parse(text.NewReader(part.source))
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		spans = part.inline(spans, n, base)
	}
	return spans
}

// inline appends the text of a node's children to spans. Line breaks stay line breaks.
func (p *page) inline(spans []span, parent ast.Node, base style) []span {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			spans = append(spans, span{shown(n.Value(p.source)), base})
			if n.SoftLineBreak() || n.HardLineBreak() {
				spans = append(spans, span{"\n", base})
			}
		case *ast.CodeSpan:
			spans = append(spans, span{p.codeSpan(n), p.colours.code.over(base)})
		case *ast.Emphasis:
			spans = p.inline(spans, n, style{bold: n.Level > 1, italic: n.Level == 1}.over(base))
		case *extension.Strikethrough:
			mark := ""
			if p.plain {
				mark = "~~"
			}
			struck := style{strike: true}.over(base)
			spans = append(p.inline(append(spans, span{mark, struck}), n, struck), span{mark, struck})
		case *ast.Link:
			spans = p.link(spans, n, n.Destination, n.Title, base)
		case *ast.Image:
			spans = append(spans, span{"image: ", base})
			spans = p.link(spans, n, n.Destination, n.Title, base)
		default:
			spans = p.inline(spans, n, base)
		}
	}
	return spans
}

// codeSpan returns the text of a code span in one line.
func (p *page) codeSpan(n *ast.CodeSpan) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(p.source))
		}
	}
	code := strings.ReplaceAll(b.String(), "\n", " ")
	if p.plain {
		code = "`" + code + "`"
	}
	return code
}

// link appends the text of a link, and its address and title in parentheses. If the text is
// the address, it appends the address once.
func (p *page) link(spans []span, n ast.Node, address, title []byte, base style) []span {
	before := len(spans)
	spans = p.inline(spans, n, p.colours.link.over(base))
	var words strings.Builder
	for _, s := range spans[before:] {
		words.WriteString(s.text)
	}
	at := strings.ReplaceAll(shown(address), "\n", " ")
	if len(title) > 0 {
		at = strings.TrimSpace(at + ` "` + shown(title) + `"`)
	}
	switch words.String() {
	case at:
		return spans
	case "":
		return append(spans, span{at, p.colours.link.over(base)})
	}
	if at == "" {
		return spans
	}
	return append(spans, span{" (" + at + ")", p.colours.quiet.over(base)})
}

// shown resolves backslashes and references such as &amp; in a text. The result may
// contain a control character that the source does not contain. So shown makes such
// characters visible.
func shown(source []byte) string {
	var b strings.Builder
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\' && i+1 < len(source) && util.IsPunct(source[i+1]):
			i++
			b.WriteByte(source[i])
		case c == '&':
			end := i + 1
			for end < len(source) && (source[end] == '#' || util.IsAlphaNumeric(source[end])) {
				end++
			}
			if end == len(source) || source[end] != ';' {
				b.WriteByte(c)
				continue
			}
			b.Write(util.ResolveEntityNames(util.ResolveNumericReferences(source[i : end+1])))
			i = end
		default:
			b.WriteByte(c)
		}
	}
	return visible.All(b.String())
}

// strikethrough parses text between two double tildes. Single tildes stay text: they are
// often home directories.
type strikethrough struct{}

func (strikethrough) Trigger() []byte { return []byte{'~'} }

func (s strikethrough) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node { //nolint:ireturn // the library defines it
	before := block.PrecendingCharacter()
	source, segment := block.PeekLine()
	d := parser.ScanDelimiter(source, before, 2, s)
	if d == nil || d.OriginalLength != 2 || before == '~' {
		return nil
	}
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

func (strikethrough) IsDelimiter(b byte) bool { return b == '~' }

func (strikethrough) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (strikethrough) OnMatch(int) ast.Node { return extension.NewStrikethrough() } //nolint:ireturn // the library defines it
