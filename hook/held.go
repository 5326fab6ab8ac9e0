package hook

import (
	"container/list"
	"sync"
)

// heldLimit is how many inputs of queued work a process keeps. Work whose input was dropped
// fails with job.input_gone.
const heldLimit = 16_384

// heldInputs keeps the inputs of queued work by key, in memory and up to a limit, if
// nothing else can find them again.
type heldInputs struct {
	mu     sync.Mutex
	inputs map[string]*list.Element // of *heldInput
	order  list.List                // the oldest first
}

type heldInput struct {
	key  string
	in   any
	runs int // the runs that use it: of those with one key, one is queued
}

func (h *heldInputs) keep(key string, in any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.inputs[key]; known != nil {
		known.Value.(*heldInput).runs++
		return
	}
	if h.inputs == nil {
		h.inputs = make(map[string]*list.Element)
	}
	h.inputs[key] = h.order.PushBack(&heldInput{key, in, 1})
	if h.order.Len() > heldLimit {
		h.remove(h.order.Front())
	}
}

// remove removes an input. h.mu is held.
func (h *heldInputs) remove(e *list.Element) {
	h.order.Remove(e)
	delete(h.inputs, e.Value.(*heldInput).key)
}

func (h *heldInputs) find(key string) (any, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.inputs[key]; known != nil {
		return known.Value.(*heldInput).in, true
	}
	return nil, false
}

// forgo releases one use of an input whose run could not be queued.
func (h *heldInputs) forgo(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.inputs[key]; known != nil {
		input := known.Value.(*heldInput)
		if input.runs--; input.runs == 0 {
			h.remove(known)
		}
	}
}

// drop removes an input whose work is done.
func (h *heldInputs) drop(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.inputs[key]; known != nil {
		h.remove(known)
	}
}
