package scripted

import (
	"slices"

	"github.com/belay-run/belay"
)

// record keeps the newest requests. When the record is full, a new request replaces the
// oldest one. The owner of the record locks it. The record copies each request's slice of
// messages, because the caller may reuse the slice. The messages themselves never change.
type record struct {
	requests []belay.Request
	oldest   int // index of the oldest request, once the ring is full
}

func (r *record) add(req *belay.Request, keep int) {
	if keep <= 0 {
		return
	}
	if len(r.requests) < keep {
		r.requests = append(r.requests, belay.Request{})
		copyRequest(&r.requests[len(r.requests)-1], req)
		return
	}
	copyRequest(&r.requests[r.oldest], req)
	r.oldest = (r.oldest + 1) % len(r.requests)
}

// all returns the requests, oldest first.
func (r *record) all() []belay.Request {
	all := slices.Concat(r.requests[r.oldest:], r.requests[:r.oldest])
	for i := range all {
		all[i].Messages = slices.Clone(all[i].Messages) // the ring will overwrite its own slices
	}
	return all
}

// copyRequest copies a request, and reuses the memory of dst for its messages.
func copyRequest(dst, src *belay.Request) {
	messages := dst.Messages
	clear(messages) // otherwise the array would keep old messages in memory
	messages = append(messages[:0], src.Messages...)
	*dst = *src
	dst.Messages = messages
}
