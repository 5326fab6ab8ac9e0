package console

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"github.com/belay-run/belay/internal/mdtable"
)

// markdowner turns the text of a model into HTML. HTML in the text is left out, and links to
// scripts too. An image becomes a link, because loading it would tell its server who reads
// this page.
var markdowner = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 100))),
	)
})

// nodes render what goldmark itself does not render, or renders in another way.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		image, ok := n.(*ast.Image)
		if !ok {
			return ast.WalkContinue, nil
		}
		if entering {
			_, _ = w.WriteString("<span class=\"image\">image: ")
			return ast.WalkContinue, nil
		}
		_, _ = w.WriteString(" (")
		_, _ = w.Write(util.EscapeHTML(image.Destination))
		_, _ = w.WriteString(")</span>")
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindParagraph, paragraph)
	r.Register(ast.KindRawHTML, escapeRaw)
	r.Register(ast.KindHTMLBlock, escapeBlock)
}

// mostCells is how many cells a table may have. A larger one is shown as it was written, because
// each cell is Markdown of its own.
const mostCells = 2000

// paragraph renders a paragraph. If it ends with a table, paragraph renders the table too.
func paragraph(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	rows := make([]string, n.Lines().Len())
	for i := range rows {
		line := n.Lines().At(i)
		rows[i] = string(line.Value(source))
	}
	t, ok := mdtable.In(rows)
	if !ok || len(t.Rows)*len(t.Aligns) > mostCells {
		_, _ = w.WriteString(map[bool]string{true: "<p>", false: "</p>\n"}[entering])
		return ast.WalkContinue, nil
	}
	if !entering {
		return ast.WalkContinue, nil
	}
	if t.Above > 0 {
		inline(w, "p", strings.Join(rows[:t.Above], ""))
	}
	_, _ = w.WriteString("<table>")
	for i, row := range t.Rows {
		_, _ = w.WriteString("<tr>")
		for _, cell := range row[:min(len(row), len(t.Aligns))] {
			inline(w, map[bool]string{true: "th", false: "td"}[i == 0], cell)
		}
		_, _ = w.WriteString("</tr>")
	}
	_, _ = w.WriteString("</table>\n")
	return ast.WalkSkipChildren, nil
}

// inline renders a text that is part of a paragraph, in an element of its own.
func inline(w util.BufWriter, element, text string) {
	var b bytes.Buffer
	if markdowner().Convert([]byte(strings.TrimSpace(text)), &b) != nil {
		return // it writes to memory, and cannot fail
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), "<p>"), "</p>")
	_, _ = w.WriteString("<" + element + ">" + inner + "</" + element + ">")
}

// escapeRaw shows HTML in a line as text.
func escapeRaw(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if raw, ok := n.(*ast.RawHTML); ok && entering {
		for i := range raw.Segments.Len() {
			segment := raw.Segments.At(i)
			_, _ = w.Write(util.EscapeHTML(segment.Value(source)))
		}
	}
	return ast.WalkSkipChildren, nil
}

// escapeBlock shows a block of HTML as text.
func escapeBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block, ok := n.(*ast.HTMLBlock)
	if !ok {
		return ast.WalkContinue, nil
	}
	if entering {
		_, _ = w.WriteString("<pre>")
		for i := range block.Lines().Len() {
			line := block.Lines().At(i)
			_, _ = w.Write(util.EscapeHTML(line.Value(source)))
		}
		return ast.WalkContinue, nil
	}
	if block.HasClosure() {
		_, _ = w.Write(util.EscapeHTML(block.ClosureLine.Value(source)))
	}
	_, _ = w.WriteString("</pre>")
	return ast.WalkContinue, nil
}

// markdown shows a text as Markdown.
func markdown(text string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b bytes.Buffer
		if err := markdowner().Convert([]byte(text), &b); err != nil {
			return err //nolint:wrapcheck // the page cannot be rendered
		}
		_, err := w.Write(b.Bytes())
		return err //nolint:wrapcheck // the page cannot be rendered
	})
}
