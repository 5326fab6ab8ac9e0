package wire

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/belay-run/belay"
)

// Head is the beginning of a request in JSON: everything before its messages.
type Head struct {
	JSON []byte
	// Names are the original names of the tools that had to be renamed, by the new name.
	Names map[string]string

	system string
	tools  []belay.ToolDeclaration
	chosen belay.Settings
	bound  int
	quiet  bool
}

// Heads keeps the last few heads of a model, since the requests of a session repeat theirs.
// The zero value is ready for use, by any number of goroutines.
type Heads struct{ kept atomic.Pointer[[]*Head] }

// maxHeads is how many heads a model keeps. Agents that share a model have different heads.
const maxHeads = 8

// For returns the head of a request with a bound on its response. The value of quiet is
// part of what distinguishes heads: it says that the model must not think. If no kept head
// fits, For calls encode. Two goroutines may encode the same head at the same time, and one
// of the two is not kept.
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

// fits reports whether a request begins with this head.
func (h *Head) fits(req *belay.Request, bound int) bool {
	return h.bound == bound && h.system == req.System && sameSettings(&h.chosen, &req.Settings) &&
		slices.EqualFunc(h.tools, req.Tools, func(a, b belay.ToolDeclaration) bool {
			return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.InputSchema, b.InputSchema)
		})
}
