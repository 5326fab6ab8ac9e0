package mcptool

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
)

// progress tells those who watch how far a call is. Whoever watches may be slow, and a
// server's messages are read by one goroutine for all calls: so a goroutine of its own
// tells, begun by the first news, and of several news that wait it tells the last.
type progress struct {
	controls *belay.Controls
	call     *belay.CallPart

	mu    sync.Mutex
	next  string
	news  bool
	going chan struct{} // closed when the goroutine has ended; nil if there is none
	ended bool
}

// tell takes news, and never waits.
func (p *progress) tell(n *mcp.ProgressNotificationParams) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.next, p.news = spoken(n), true
	if p.going == nil {
		p.going = make(chan struct{})
		go p.emit(p.going) // ends when there are no news left
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
		_ = p.controls.Emit(belay.Event{Kind: belay.EventToolProgress, Text: text, Call: p.call}) // it is no error if nobody can be told any more
	}
}

// end waits until what came is told.
func (p *progress) end() {
	p.mu.Lock()
	p.ended = true
	going := p.going
	p.mu.Unlock()
	if going != nil {
		<-going
	}
}

// spoken is progress in words: how far, of how much, and what is being done.
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
