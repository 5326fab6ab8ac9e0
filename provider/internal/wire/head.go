package wire

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/belay-run/belay"
)

// Head is the beginning of a request in JSON: all fields before the messages.
type Head struct {
	JSON []byte
	// Names maps the new name of each renamed tool to its original name.
	Names map[string]string

	system string
	tools  []belay.ToolDeclaration
	chosen belay.Settings
	bound  int
	quiet  bool
}

// Heads caches the last few heads of a model, because the requests of a session have the
// same head. The zero value is ready to use. Goroutines may share it.
type Heads struct{ kept atomic.Pointer[[]*Head] }

// maxHeads is the size of the cache. Agents that share a model have different heads.
const maxHeads = 8

// For returns the head of a request. The bound limits the length of the response, and
// quiet means that the request has no thinking budget. If the cache has no head for these
// values, For calls encode. Two goroutines may encode the same head at once. Then one
// result is not cached.
func (h *Heads) For(req *belay.Request, bound int, quiet bool, encode func() ([]byte, map[string]string, error)) (*Head, error) {
	var kept []*Head
	if p := h.kept.Load(); p != nil {
		kept = *p
	}
	for _, head := range kept {
		if head.quiet == quiet && head.fits(req, bound) {
			return head, nil
		}
	}
	data, names, err := encode()
	if err != nil {
		return nil, err
	}
	head := &Head{JSON: data, Names: names, system: req.System, tools: slices.Clone(req.Tools), chosen: req.Settings, bound: bound, quiet: quiet}
	for i := range head.tools {
		head.tools[i].InputSchema = bytes.Clone(head.tools[i].InputSchema) // the caller may change it
	}
	kept = append([]*Head{head}, kept[:min(len(kept), maxHeads-1)]...)
	h.kept.Store(&kept)
	return head, nil
}

// fits reports whether the head can be used for a request: both must have the same system
// prompt, tools, settings and bound.
func (h *Head) fits(req *belay.Request, bound int) bool {
	return h.bound == bound && h.system == req.System && sameSettings(&h.chosen, &req.Settings) &&
		slices.EqualFunc(h.tools, req.Tools, func(a, b belay.ToolDeclaration) bool {
			return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.InputSchema, b.InputSchema)
		})
}
