package mcptool

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
)

// progress reports the progress of a call to its watchers. Watchers may be slow, and
// one goroutine reads a server's messages for all calls. So a separate goroutine,
// started by the first report, does the reporting. If several reports wait, it sends
// the last.
type progress struct {
	controls *belay.Controls
	call     *belay.CallPart

	mu    sync.Mutex
	next  string
	news  bool
	going chan struct{} // closed when the goroutine has ended; nil if there is none
	ended bool
}

// tell takes a report and never blocks.
func (p *progress) tell(n *mcp.ProgressNotificationParams) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.next, p.news = spoken(n), true
	if p.going == nil {
		p.going = make(chan struct{})
		go p.emit(p.going) // ends when no reports are left
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
		_ = p.controls.Emit(belay.Event{Kind: belay.EventToolProgress, Text: text, Call: p.call}) // not an error: the watchers may be gone
	}
}

// end waits until all reports are delivered.
func (p *progress) end() {
	p.mu.Lock()
	p.ended = true
	going := p.going
	p.mu.Unlock()
	if going != nil {
		<-going
	}
}

// spoken returns progress in words: how far, of how much, and the current step.
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
