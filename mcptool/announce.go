package mcptool

import (
	"time"
)

const (
	// listChanged is how a server announces that its tools have changed.
	listChanged = "notifications/tools/list_changed"
	// catchingUp is how long a request waits for a list of tools.
	catchingUp = 2 * time.Second
)

// announce notes that the server has announced other tools, and has them listed. It is
// called when the announcement is read, before anything that the server sent behind it.
func (l *link) announce() {
	l.announced.Add(1)
	l.stir()
	select {
	case l.changed <- struct{}{}:
	default: // it is about to be looked at
	}
}

// stir wakes those who wait for the list of tools.
func (l *link) stir() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.stirred)
	l.stirred = make(chan struct{})
}

// stirs is closed with the next news about the list of tools.
func (l *link) stirs() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stirred
}

// called notes the end of a call that may have changed the list of tools, which is listed
// again then. Some servers announce the change only behind the result: the official Go SDK
// does so 10 ms later. announced is how many announcements there were when the call began.
func (l *link) called(announced int64) {
	info := l.now.Load().info
	if info == nil || info.Capabilities == nil || info.Capabilities.Tools == nil || !info.Capabilities.Tools.ListChanged {
		return // it never changes them, or never says so
	}
	l.urgent.Store(true)
	if l.announced.Load() == announced {
		l.announce()
		return
	}
	select { // it was announced, but may have been put off
	case l.changed <- struct{}{}:
	default:
	}
}

// catchUp waits, for a while, until the tools are listed that were announced so far.
func (l *link) catchUp(over <-chan struct{}) {
	announced := l.announced.Load()
	if l.listed.Load() >= announced {
		return
	}
	timer := time.NewTimer(catchingUp)
	defer timer.Stop()
	for {
		stirs := l.stirs() // before looking
		if l.listed.Load() >= announced || l.current.Load() == nil {
			return
		}
		select {
		case <-stirs:
		case <-timer.C:
			return
		case <-over:
			return
		}
	}
}
