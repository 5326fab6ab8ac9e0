package hook

import (
	"container/list"
	"sync"
)

// heldLimit is how many inputs of queued work a process keeps. If the input of queued work
// was dropped, the work fails with job.input_gone.
const heldLimit = 16_384

// heldInputs keeps the inputs of queued work in memory, by key and up to heldLimit. It is
// used only if neither Recall nor the queue can return the input.
type heldInputs struct {
	mu     sync.Mutex
	inputs map[string]*list.Element // of *heldInput
	order  list.List                // the oldest first
}

type heldInput struct {
	key  string
	in   any
	runs int // runs that were queued with this key; the queue keeps only one of them
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

// remove removes an input. The caller holds h.mu.
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

// forgo undoes one keep, for a run that could not be queued.
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
