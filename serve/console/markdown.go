package console

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/a-h/templ"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// markdowner turns the text of a model into HTML. HTML in the text is left out, and links to
// scripts too. An image becomes a link, because loading it would tell its server who reads
// this page.
var markdowner = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify, extension.TaskList),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(imagesAsLinks{}, 100))),
	)
})

type imagesAsLinks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (imagesAsLinks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
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
	r.Register(ast.KindRawHTML, escapeRaw)
	r.Register(ast.KindHTMLBlock, escapeBlock)
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
