package cli

import (
	"github.com/belay-run/belay/internal/visible"
)

// notice is a message that belongs to no event of a turn: a file that can no longer be loaded, or
// a failed background hook.
type notice struct {
	text string
	good bool // otherwise it is a warning
}

// showNotice shows a notice. It may be called at any time, by any goroutine.
func (a *app) showNotice(n notice) {
	a.mu.Lock()
	show := a.noticed
	a.mu.Unlock()
	if show == nil {
		show = a.remarkNotice
	}
	show(n)
}

// remarkNotice writes a notice to standard error.
func (a *app) remarkNotice(n notice) {
	text := visible.Clean(n.text)
	if !n.good {
		text = a.onErr.yellow("warning:") + " " + text
	}
	a.remarkf("%s", text)
}

// onNotice makes f show notices, until the returned function is called.
func (a *app) onNotice(f func(notice)) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noticed = f
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.noticed = nil
	}
}
