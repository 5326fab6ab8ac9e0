package cli

import (
	"sync"
	"time"
)

// spinner shows activity if standard error is a terminal. The lock of its printer guards
// it.
type spinner struct {
	p     *printer
	label string
	since time.Time
	drawn bool
	stop  chan struct{}
	done  sync.WaitGroup
}

var spinnerFrames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

const spinnerPace = 120 * time.Millisecond

func newSpinner(p *printer) *spinner { return &spinner{p: p} }

// start shows the spinner until the method end is called.
func (s *spinner) start() {
	if !s.p.a.errTerminal {
		return
	}
	s.p.mu.Lock()
	s.say("waiting for the model")
	s.draw(spinnerFrames[0])
	s.p.mu.Unlock()
	s.stop = make(chan struct{})
	s.done.Go(func() {
		tick := time.NewTicker(spinnerPace)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-tick.C:
				s.p.mu.Lock()
				s.draw(spinnerFrames[n%len(spinnerFrames)])
				s.p.mu.Unlock()
			case <-s.stop:
				return
			}
		}
	})
}

// end stops the spinner and removes it from the screen.
func (s *spinner) end() {
	if s.stop == nil {
		return
	}
	close(s.stop)
	s.done.Wait()
	s.stop = nil
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.clear()
}

// say sets the text beside the spinner.
func (s *spinner) say(label string) {
	if s.label != label {
		s.label, s.since = label, time.Now()
	}
}

// draw shows a frame, unless the current line contains text of the model.
func (s *spinner) draw(frame string) {
	if s.p.midLine {
		return
	}
	a := s.p.a
	label := short(s.label, a.width-16)
	if seconds := int(time.Since(s.since).Seconds()); seconds > 0 {
		label += " " + took(time.Duration(seconds)*time.Second)
	}
	a.write(a.err, "\r\x1b[2K"+a.onErr.dim(frame+" "+label))
	s.drawn = true
}

// clear removes the frame from the screen.
func (s *spinner) clear() {
	if s.drawn {
		s.p.a.write(s.p.a.err, "\r\x1b[2K")
		s.drawn = false
	}
}
