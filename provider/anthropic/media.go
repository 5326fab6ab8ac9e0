package anthropic

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif" // image.DecodeConfig needs the formats
	_ "image/jpeg"
	_ "image/png"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// The service's limits for an image. It rejects a request with a larger image, and every later
// request of the session contains the image too. So the model gets a text about such an image
// instead.
const (
	// MaxImageBytes is how many bytes fit into 5 MB of base64.
	MaxImageBytes = 5 << 20 / 4 * 3
	// MaxImagePixels is the largest width and height.
	MaxImagePixels = 8000
)

// mediaOf returns an image or a file as a block. For a file that the service does not
// accept, it returns a text about the file.
func mediaOf(m *belay.Media) any {
	switch kind := wire.ImageType(m); {
	case kind != "" && len(m.Data) > 0:
		return imageOf(m, kind)
	case kind != "" && m.URL != "":
		return mediaBlock{Type: "image", Source: mediaSource{Type: "url", URL: m.URL}}
	case m.MIME == "application/pdf" && len(m.Data) > 0:
		return document(m, mediaSource{Type: "base64", MediaType: m.MIME, Data: base64.StdEncoding.EncodeToString(m.Data)})
	case m.MIME == "application/pdf" && m.URL != "":
		return document(m, mediaSource{Type: "url", URL: m.URL})
	case strings.HasPrefix(m.MIME, "text/") && !wire.IsBlank(string(m.Data)):
		return document(m, mediaSource{Type: "text", MediaType: "text/plain", Data: string(m.Data)})
	default:
		return newTextBlock(wire.FileNotice(m))
	}
}

// imageOf returns an image as a block, or a text if the image is too large for the service.
func imageOf(m *belay.Media, kind string) any {
	size, _, _ := image.DecodeConfig(bytes.NewReader(m.Data)) // on an error the size is 0 x 0 and the service decides
	if len(m.Data) > MaxImageBytes || max(size.Width, size.Height) > MaxImagePixels {
		return newTextBlock(fmt.Sprintf("[An image that cannot be shown, since it is too large: name %q, type %q, %d bytes, %d x %d pixels]", m.Name, kind, len(m.Data), size.Width, size.Height))
	}
	return mediaBlock{Type: "image", Source: mediaSource{Type: "base64", MediaType: kind, Data: base64.StdEncoding.EncodeToString(m.Data)}}
}

func document(m *belay.Media, source mediaSource) mediaBlock {
	return mediaBlock{Type: "document", Title: m.Name, Source: source}
}
