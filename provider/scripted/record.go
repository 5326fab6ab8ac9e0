package scripted

import (
	"slices"

	"github.com/belay-run/belay"
)

// record keeps the newest requests, in a ring once it is full. Its owner guards
// it. A request's slice of messages is copied: the messages never change, but
// the caller may reuse the slice.
type record struct {
	requests []belay.Request
	oldest   int // the one to replace next, once full
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
		all[i].Messages = slices.Clone(all[i].Messages) // the ring uses its own again
	}
	return all
}

// copyRequest copies a request, into the memory that dst has for its messages.
func copyRequest(dst, src *belay.Request) {
	messages := dst.Messages
	clear(messages) // or old ones would stay in memory
	messages = append(messages[:0], src.Messages...)
	*dst = *src
	dst.Messages = messages
}
