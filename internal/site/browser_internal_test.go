package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long the test waits for something that must happen. It is long, because the machine may be busy.
const patience = 2 * time.Minute

// tab is a page in a browser.
type tab struct {
	*testing.T

	ctx context.Context //nolint:containedctx // that of the browser
}

// newTab starts a browser.
func newTab(t *testing.T) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("install the Debian package chromium (make browser does): %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	allocator, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, closed := chromedp.NewContext(allocator)
	t.Cleanup(closed)
	return &tab{t, ctx}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatalf("the browser: %v", err)
	}
}

// value returns the value of an expression as text.
func (b *tab) value(expression string) string {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.Fatalf("the browser: %s: %v", expression, err)
	}
	return value
}

// until waits until an expression is true, also if the page changes meanwhile.
func (b *tab) until(expression string) {
	b.Helper()
	for {
		_, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(patience)))
		if err == nil {
			return
		}
		if b.ctx.Err() != nil {
			b.Fatalf("never true: %s: %v", expression, err)
		}
	}
}

// The site works from a directory, without a server: a word is searched, the first result is followed, and the switch between light
// and dark changes the colours and is remembered.
func TestSiteInBrowser(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "site")
	if err := build(filepath.Join("..", ".."), out); err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	at := "file://" + filepath.ToSlash(out)
	b.do(chromedp.Navigate(at+"/index.html"), chromedp.WaitVisible(chromedp.CSS("#search")))
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "xyzzyqwv"))
	b.until("document.querySelector('#found').innerText.includes('Nothing found')")
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "\x1b")) // Escape closes the list
	b.until("document.querySelector('#found').hidden")
	b.do(chromedp.Navigate(at+"/index.html"), chromedp.WaitVisible(chromedp.CSS("#search")))
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "provenance statement"))
	b.until("document.querySelector('#found a')")
	if marked := strings.ToLower(b.value("document.querySelector('#found').innerHTML")); !strings.Contains(marked, "<mark>provenance</mark>") && !strings.Contains(marked, "<mark>statement</mark>") {
		t.Errorf("no word is marked in the results: %s", marked)
	}
	target := b.value("document.querySelector('#found a').href")
	if !strings.HasPrefix(target, at+"/") || !strings.Contains(target, ".html") {
		t.Errorf("the first result leads to %s", target)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "\r"))
	b.until(fmt.Sprintf("location.href === %q && document.readyState === 'complete'", target))
	text := strings.ToLower(b.value("document.querySelector('main').innerText"))
	if !strings.Contains(text, "provenance") || !strings.Contains(text, "statement") {
		t.Errorf("%s does not have the words", target)
	}
	colour := "getComputedStyle(document.body).backgroundColor"
	light := b.value(colour)
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	b.until(fmt.Sprintf("%s !== %q", colour, light))
	dark := b.value(colour)
	b.do(chromedp.Navigate(at+"/permit.html"), chromedp.WaitVisible(chromedp.CSS("#theme")))
	if got := b.value(colour); got != dark {
		t.Errorf("the next page has the colour %s, want %s", got, dark)
	}
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	b.until(fmt.Sprintf("%s === %q", colour, light))
}

// A site that cannot be made leaves the last one.
func TestBuildLeavesTheLastSite(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "site")
	if err := write(out, "index.html", []byte("the last one")); err != nil {
		t.Fatal(err)
	}
	if err := build(t.TempDir(), out); err == nil {
		t.Fatal("a site is made of nothing")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*", "*")); len(left) != 1 || left[0] != filepath.Join(out, "index.html") {
		t.Errorf("there is %q", left)
	}
}
