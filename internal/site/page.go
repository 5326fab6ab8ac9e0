package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// A page is a page of the docs.
type page struct {
	name   string // in the repository: docs/hooks.md
	target string // in the site: hooks.html
	title  string
	body   string // HTML
	tops   []heading
	parts  []part
	links  []string // the pages that it links to, in order, as names in the repository
}

// A heading is a heading of the second level.
type heading struct{ id, text string }

// A part is a heading and the text below it, for the search.
type part struct{ id, title, text string }

// An entry is a part of a page in the index of the search.
type entry struct {
	URL   string `json:"u"`
	Page  string `json:"p"`
	Title string `json:"t"`
	Text  string `json:"x"`
}

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(), ghtml.WithUnsafe()), // the pages are ours
)

// parse reads a page and rewrites its links.
func parse(name string, content []byte) (*page, error) {
	p := &page{name: name, target: targetOf(name)}
	doc := markdown.Parser().Parse(text.NewReader(content), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	current := part{}
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			anchor, _ := id.([]byte)
			title := plain(n, content)
			p.parts = append(p.parts, current)
			current = part{id: string(anchor), title: title}
			switch n.Level {
			case 1:
				p.title = title
			case 2:
				p.tops = append(p.tops, heading{string(anchor), title})
			}
		case *ast.Link:
			n.Destination = []byte(p.link(string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(p.link(string(n.Destination)))
		}
		if n.Type() == ast.TypeBlock && n.Kind() != ast.KindHeading && n.Kind() != ast.KindHTMLBlock && n.Lines() != nil && n.Lines().Len() > 0 {
			current.text += " " + string(n.Lines().Value(content))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	p.parts = append(p.parts, current)
	if p.title == "" {
		return nil, fmt.Errorf("%s: the page has no title", name)
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, content, doc); err != nil {
		return nil, err
	}
	// A wide table scrolls by itself, so that the page does not.
	p.body = strings.NewReplacer("<table>", `<div class="wide"><table>`, "</table>", "</table></div>").Replace(b.String())
	return p, nil
}

// plain returns the text of a node.
func plain(n ast.Node, content []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(content))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// link returns where a link of the page leads in the site: to a page, to a file that is copied, or to the source.
func (p *page) link(to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") || strings.HasPrefix(to, "#") {
		return to
	}
	file, fragment, marked := strings.Cut(to, "#")
	if marked {
		fragment = "#" + fragment
	}
	file = path.Join(path.Dir(p.name), file)
	isPage := path.Ext(file) == ".md" && (strings.HasPrefix(file, "docs/") || slices.Contains(projectPages, file))
	switch {
	case isPage:
		p.links = append(p.links, file)
		return relative(p.target, targetOf(file)) + fragment
	case file == "docs":
		return relative(p.target, "index.html")
	case file == "docs/design", !strings.HasPrefix(file, "docs/") || path.Ext(file) == "":
		return source + file + fragment
	default:
		return relative(p.target, strings.TrimPrefix(file, "docs/")) + fragment
	}
}

// relative returns the way from one file of the site to another.
func relative(from, to string) string { return strings.Repeat("../", strings.Count(from, "/")) + to }

// anchors makes the ids of headings as GitHub does, so that links work in both places.
type anchors map[string]int

var notInAnchor = lazyregexp.New(`[^\p{L}\p{N} _-]`)

func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(string(value)), ""), " ", "-")
	a[id]++
	if n := a[id]; n > 1 {
		id = fmt.Sprintf("%s-%d", id, n-1)
	}
	return []byte(id)
}

func (anchors) Put([]byte) {}

// noise is what the search need not show: marks of Markdown.
var noise = strings.NewReplacer("`", "", "**", "", "|", " ", "](", " (", "[", "", "---", "")

// entries returns the parts of the page for the search.
func (p *page) entries() []entry {
	var all []entry
	for _, part := range p.parts {
		words := strings.Join(strings.Fields(noise.Replace(part.text)), " ")
		if words == "" && part.title == "" {
			continue
		}
		url := p.target
		if part.id != "" && part.title != p.title {
			url += "#" + part.id
		}
		all = append(all, entry{url, p.title, part.title, words})
	}
	return all
}

// html returns the page with the frame of the site.
func (p *page) html(groups []group) []byte {
	var b bytes.Buffer
	base := strings.Repeat("../", strings.Count(p.target, "/"))
	title := html.EscapeString(p.title)
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>%s · Belay</title>
<link rel="stylesheet" href="%[2]ssite.css"><script src="%[2]ssearch.js" defer></script><script src="%[2]ssite.js" defer></script></head>
<body data-base="%[2]s"><a class="skip" href="#content">Skip to the text</a>
<header><a class="brand" href="%[2]sindex.html">Belay</a>
<search><input id="search" type="search" placeholder="Search the docs" aria-label="Search the docs" autocomplete="off"><kbd>/</kbd><ol id="found" hidden></ol></search>
<button id="theme" type="button" aria-label="Switch between light and dark">◐</button></header>
<div class="frame"><nav aria-label="Pages"><details open><summary>Pages</summary>
`, title, base)
	for _, g := range groups {
		fmt.Fprintf(&b, "<h2>%s</h2><ul>", html.EscapeString(g.title))
		for _, other := range g.pages {
			mark := ""
			if other == p {
				mark = ` aria-current="page"`
			}
			fmt.Fprintf(&b, `<li><a href="%s"%s>%s</a></li>`, relative(p.target, other.target), mark, html.EscapeString(other.title))
		}
		b.WriteString("</ul>\n")
	}
	fmt.Fprintf(&b, "</details></nav>\n<main id=\"content\">%s</main>\n<aside>", p.body)
	if len(p.tops) > 1 {
		b.WriteString("<h2>On this page</h2><ul>")
		for _, h := range p.tops {
			fmt.Fprintf(&b, `<li><a href="#%s">%s</a></li>`, h.id, html.EscapeString(h.text))
		}
		b.WriteString("</ul>")
	}
	b.WriteString("</aside></div></body></html>\n")
	return b.Bytes()
}

// A group is a section of the list of pages.
type group struct {
	title string
	pages []*page
}

// groupsOf returns the pages as the index lists them. A page belongs to the first section that links to it. Pages that the index
// does not list are under "More".
func groupsOf(pages []*page) ([]group, error) {
	byName := map[string]*page{}
	for _, p := range pages {
		byName[p.name] = p
	}
	index := byName["docs/README.md"]
	if index == nil {
		return nil, errors.New("there is no docs/README.md, which lists the pages")
	}
	seen := map[*page]bool{index: true}
	var groups []group
	for _, section := range regexp.MustCompile(`(?m)<h2 `).Split(index.body, -1)[1:] {
		_, rest, _ := strings.Cut(section, ">")
		title, _, _ := strings.Cut(rest, "<")
		g := group{title: html.UnescapeString(title)}
		for _, m := range regexp.MustCompile(`href="([^"#]+\.html)`).FindAllStringSubmatch(section, -1) {
			for _, p := range pages {
				if p.target == m[1] && !seen[p] {
					seen[p] = true
					g.pages = append(g.pages, p)
				}
			}
		}
		if len(g.pages) > 0 {
			groups = append(groups, g)
		}
	}
	more := group{title: "More"}
	for _, p := range pages {
		if !seen[p] {
			more.pages = append(more.pages, p)
		}
	}
	if len(more.pages) > 0 {
		groups = append(groups, more)
	}
	return groups, nil
}
