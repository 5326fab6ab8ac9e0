package console

import (
	"cmp"
	"net/url"
	"strconv"
	"time"
)

// turnAddress is the address of a session, of one of its turns, and of what is shown of the turn.
type turnAddress struct {
	Session, Turn, Bar string
	Before             int64         // shows messages with a lower number; 0: the newest, or those of the turn
	From, To           time.Duration // the part of the waterfall; 0: all of it
}

// path returns the address as a text.
func (a turnAddress) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"turn": a.Turn, "bar": a.Bar} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if a.Before > 0 {
		q.Set("before", strconv.FormatInt(a.Before, 10))
	}
	if a.To > 0 {
		q.Set("from", a.From.String())
		q.Set("to", a.To.String())
	}
	if len(q) == 0 {
		return sessionPath(a.Session)
	}
	return sessionPath(a.Session) + "?" + q.Encode()
}

// turnPath returns the address of a turn, and of a bar of it.
func turnPath(session, turn, key string) string {
	return turnAddress{Session: session, Turn: turn, Bar: key}.path()
}

// part returns the address of another part of the waterfall. It has the given length around a
// time, as far as the turn has it.
func (a turnAddress) part(w *waterfall, around, length time.Duration) turnAddress {
	length = max(length, leastPart)
	if length >= w.Total {
		a.From, a.To = 0, 0
		return a
	}
	a.From = min(max(around-length/2, 0), w.Total-length)
	a.To = a.From + length
	return a
}

// around returns the time around which the waterfall is zoomed: the middle of the chosen bar, or
// of the part that is shown.
func (b *conversationView) around() time.Duration {
	if b.Bar == nil {
		return (b.From + b.To) / 2
	}
	return b.Bar.Begin.Sub(b.Begin) + b.barLength()/2
}

// barLength returns how long the chosen bar is.
func (b *conversationView) barLength() time.Duration {
	return cmp.Or(b.Bar.End, b.Begin.Add(b.Total)).Sub(b.Bar.Begin)
}

// zoomPath returns the address of a shorter or a longer part of the waterfall.
func (b *conversationView) zoomPath(times float64) string {
	return b.Address.part(&b.waterfall, b.around(), time.Duration(float64(b.To-b.From)*times)).path()
}

// movePath returns the address of a part that is earlier or later, by a share of the part that is
// shown.
func (b *conversationView) movePath(by float64) string {
	length := b.To - b.From
	return b.Address.part(&b.waterfall, (b.From+b.To)/2+time.Duration(by*float64(length)), length).path()
}

// barPath returns the address of the part of the waterfall that has the chosen bar.
func (b *conversationView) barPath() string {
	return b.Address.part(&b.waterfall, b.around(), 2*b.barLength()).path()
}

// allPath returns the address of the whole waterfall.
func (b *conversationView) allPath() string {
	a := b.Address
	a.From, a.To = 0, 0
	return a.path()
}

// rowPath returns the address of a bar.
func (b *conversationView) rowPath(key string) string {
	a := b.Address
	a.Turn, a.Bar = b.Timeline.Turn.ID, key
	return a.path() + "#bar"
}

// earlierPath returns the address of earlier messages.
func (b *conversationView) earlierPath() string {
	a := b.Address
	a.Before = b.Earlier
	return a.path()
}
