package webtool

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// page is a page that was read.
type page struct {
	address *url.URL
	title   string
	text    string
	cut     bool // the page is longer than Options.MaxBytes
}

// part returns a part of the page, with what the model needs to continue.
func (p *page) part(start, most int) string {
	runes := []rune(p.text)
	var b strings.Builder
	fmt.Fprintf(&b, "address: %s\n", p.address)
	if p.title != "" {
		fmt.Fprintf(&b, "title: %s\n", p.title)
	}
	end := min(len(runes), start+most)
	switch {
	case start >= len(runes) && start > 0:
		fmt.Fprintf(&b, "The page has only %d characters.\n", len(runes))
		return b.String()
	case end < len(runes):
		fmt.Fprintf(&b, "These are the characters %d to %d of %d. To read on, use start=%d.\n", start, end, len(runes), end)
	case p.cut:
		b.WriteString("The page is longer. This is all of it that can be read.\n")
	}
	b.WriteString("\n")
	b.WriteString(string(runes[start:end]))
	return b.String()
}

// convert turns HTML into Markdown. If the page says what its main part is, it leaves out the
// rest, such as menus.
func (p *page) convert(text []byte) error {
	document, err := html.Parse(bytes.NewReader(text)) // refuses more than 512 levels, so that the converter can call itself
	if err != nil {
		return fmt.Errorf("its HTML cannot be read: %w", err)
	}
	if title := find(document, atom.Title); title != nil && title.FirstChild != nil {
		p.title = strings.Join(strings.Fields(title.FirstChild.Data), " ")
	}
	strip(document)
	root := document
	if main := find(document, atom.Main, atom.Article); main != nil && len(textOf(main)) > 200 {
		root = main
	}
	made := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	markdown, err := made.ConvertNode(root, converter.WithDomain(p.address.Scheme+"://"+p.address.Host))
	if err != nil {
		return fmt.Errorf("its HTML cannot be converted: %w", err)
	}
	p.text = strings.TrimSpace(string(markdown))
	return nil
}

// find returns the first element of one of these kinds. An earlier kind wins.
func find(n *html.Node, kinds ...atom.Atom) *html.Node {
	for _, kind := range kinds {
		for d := range n.Descendants() {
			if d.Type == html.ElementNode && d.DataAtom == kind {
				return d
			}
		}
	}
	return nil
}

// strip removes elements that are not text for a reader, and what the page hides. It also
// removes colspan and rowspan: a cell of 60,000 columns and rows would fill the memory.
func strip(document *html.Node) {
	var gone []*html.Node
	for d := range document.Descendants() {
		d.Attr = slices.DeleteFunc(d.Attr, func(a html.Attribute) bool { return a.Key == "colspan" || a.Key == "rowspan" })
		switch {
		case d.Type == html.CommentNode, d.Type == html.ElementNode && hidden(d):
			gone = append(gone, d)
		case d.Type != html.ElementNode:
		case d.DataAtom == atom.Script, d.DataAtom == atom.Style, d.DataAtom == atom.Noscript, d.DataAtom == atom.Template, d.DataAtom == atom.Iframe,
			d.DataAtom == atom.Svg, d.DataAtom == atom.Form, d.DataAtom == atom.Nav, d.DataAtom == atom.Button, d.DataAtom == atom.Input:
			gone = append(gone, d)
		}
	}
	for _, n := range gone {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

// hidden reports whether an element says that it is not shown. A person does not see its text,
// so the text may try to deceive the model.
func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		value := strings.ToLower(strings.ReplaceAll(a.Val, " ", ""))
		switch {
		case a.Key == "hidden", a.Key == "aria-hidden" && value == "true":
			return true
		case a.Key == "style" && (strings.Contains(value, "display:none") || strings.Contains(value, "visibility:hidden")):
			return true
		}
	}
	return false
}

// textOf returns the text of an element.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(strings.TrimSpace(d.Data))
		}
	}
	return b.String()
}
