package mcptool

import (
	"time"
)

const (
	// listChanged is the notification that a server's tools have changed.
	listChanged = "notifications/tools/list_changed"
	// catchingUp is how long a model request waits for a server to list changed tools.
	catchingUp = 2 * time.Second
)

// announce counts a change that the server announced, and schedules a listing of its
// tools. announce runs as soon as the announcement is read, before later messages of the
// server.
func (l *link) announce() {
	l.announced.Add(1)
	l.stir()
	select {
	case l.changed <- struct{}{}:
	default: // a listing is already due
	}
}

// stir wakes all goroutines that wait for the list of tools.
func (l *link) stir() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.stirred)
	l.stirred = make(chan struct{})
}

// stirs returns a channel that the next stir closes.
func (l *link) stirs() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stirred
}

// called lists the tools again after a call, because the call may have changed them. It
// does not wait for the server to announce the change: some servers send the announcement
// after the result (the official Go SDK waits 10 ms). The argument announced is the
// number of announcements when the call began.
func (l *link) called(announced int64) {
	info := l.now.Load().info
	if info == nil || info.Capabilities == nil || info.Capabilities.Tools == nil || !info.Capabilities.Tools.ListChanged {
		return // the server does not announce changes
	}
	l.urgent.Store(true)
	if l.announced.Load() == announced {
		l.announce()
		return
	}
	select { // the server announced the change, but the listing may be delayed
	case l.changed <- struct{}{}:
	default:
	}
}

// isCaughtUp reports whether the tools were listed after the latest announced change.
func (l *link) isCaughtUp() bool { return l.listed.Load() >= l.announced.Load() }

// catchUp waits until the changes announced so far are listed, or until the server has
// ended. It returns false when the channel late fires or the extension is closed.
func (l *link) catchUp(late <-chan time.Time, over <-chan struct{}) bool {
	announced := l.announced.Load()
	for {
		stirs := l.stirs() // get the channel before the check, so that no stir is missed
		if l.listed.Load() >= announced || l.current.Load() == nil {
			return true
		}
		select {
		case <-stirs:
		case <-late:
			return false
		case <-over:
			return false
		}
	}
}
