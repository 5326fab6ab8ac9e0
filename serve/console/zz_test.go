package console_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

func TestZZ(t *testing.T) {
	w := newWorld(t, project)
	fillWorld(t, w)
	b := w.open("admin", 1280)
	b.visit("/backtest")
	b.click("#backtest summary")
	b.run(chromedp.SendKeys(chromedp.CSS("#rules"), "permit: {rules: [deny read(README.md)]}]"))
	b.click("#backtest button.primary")
	for i := range 4 {
		time.Sleep(500 * time.Millisecond)
		t.Log(i, eval[string](b, "document.querySelector('#notice').innerText+'|'+document.querySelector('#notice').outerHTML.slice(0,600)"))
	}
}
