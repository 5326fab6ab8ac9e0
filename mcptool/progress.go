package mcptool

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
)

// progress reports the progress of one call to its watchers. A goroutine of its own sends
// the reports: watchers may be slow, and must not block the goroutine that reads the
// server's messages for all calls. The first report starts the goroutine. If several
// reports wait, it sends only the last.
type progress struct {
	controls *belay.Controls
	call     *belay.CallPart

	mu    sync.Mutex
	next  string
	news  bool
	going chan struct{} // closed when the goroutine has ended; nil if none runs
	ended bool
}

// tell stores a report for the goroutine. It never blocks.
func (p *progress) tell(n *mcp.ProgressNotificationParams) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.next, p.news = spoken(n), true
	if p.going == nil {
		p.going = make(chan struct{})
		go p.emit(p.going) // ends when no report is left
	}
}

func (p *progress) emit(going chan struct{}) {
	defer close(going)
	for {
		p.mu.Lock()
		text, news := p.next, p.news
		p.news = false
		if !news {
			p.going = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		_ = p.controls.Emit(belay.Event{Kind: belay.EventToolProgress, Text: text, Call: p.call}) // an error only means that the watchers are gone
	}
}

// end waits until the goroutine has sent the last report.
func (p *progress) end() {
	p.mu.Lock()
	p.ended = true
	going := p.going
	p.mu.Unlock()
	if going != nil {
		<-going
	}
}

// spoken returns progress as text, for example "1 of 2: half way".
func spoken(n *mcp.ProgressNotificationParams) string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	text := number(n.Progress)
	if n.Total > 0 {
		text = fmt.Sprintf("%s of %s", text, number(n.Total))
	}
	if n.Message != "" {
		text += ": " + n.Message
	}
	const most = 1_000
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
