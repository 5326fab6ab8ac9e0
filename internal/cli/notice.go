package cli

import (
	"github.com/belay-run/belay/internal/visible"
)

// notice is a message that belongs to no event of a turn. Examples: a file can no longer be
// loaded, or a background hook failed.
type notice struct {
	text string
	good bool // not a warning
}

// showNotice shows a notice. Any goroutine may call it at any time.
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

// onNotice makes f show notices. Call stop to remove f.
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
