package scripted

import (
	"bytes"
	"slices"

	"github.com/belay-run/belay"
)

// mediaBytes is the size of an image or a file in the estimate. The real size is not used,
// because providers do not charge for images by the byte.
const mediaBytes = 4000

// tokens estimates the number of tokens in a number of bytes.
func tokens(size int) int { return (size + 3) / 4 }

// sizeOf returns the size of a request in bytes, and the size of the beginning that it
// shares with the previous request.
func sizeOf(req, before *belay.Request) (size, common int) {
	size = len(req.System)
	for i := range req.Tools {
		size += len(req.Tools[i].Name) + len(req.Tools[i].Description) + len(req.Tools[i].InputSchema)
	}
	same := before != nil && req.System == before.System && slices.EqualFunc(req.Tools, before.Tools, sameTool)
	if same {
		common = size
	}
	for i, m := range req.Messages {
		n := messageSize(m)
		size += n
		same = same && i < len(before.Messages) && before.Messages[i] == m
		if same {
			common += n
		}
	}
	return size, common
}

func messageSize(m *belay.Message) int {
	size := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		size += len(p.Text)
		if p.Call != nil {
			size += len(p.Call.Tool) + max(len(p.Call.Input), len(p.Call.Malformed))
		}
		if p.Result != nil {
			size += len(p.Result.Text) + mediaBytes*len(p.Result.Media)
		}
		if p.Media != nil {
			size += mediaBytes
		}
	}
	return size
}

func sameTool(a, b belay.ToolDeclaration) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.InputSchema, b.InputSchema)
}
