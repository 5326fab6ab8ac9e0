package anthropic

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif" // for reading the size of an image
	_ "image/jpeg"
	_ "image/png"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// The limits of the service for an image: bytes in base64, and pixels per side. It rejects a
// request with a larger image, and so every later request of the session.
const (
	mostEncoded = 5 << 20
	mostPixels  = 8000
)

// mediaOf returns an image or a file, or a text in place of a file that the service does not
// accept.
func mediaOf(m *belay.Media) sdk.ContentBlockParamUnion {
	switch kind := wire.ImageType(m); {
	case kind != "" && len(m.Data) > 0:
		return imageOf(m, kind)
	case kind != "" && m.URL != "":
		return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: m.URL})
	case m.MIME == "application/pdf" && len(m.Data) > 0:
		return titled(sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(m.Data)}), m.Name)
	case m.MIME == "application/pdf" && m.URL != "":
		return titled(sdk.NewDocumentBlock(sdk.URLPDFSourceParam{URL: m.URL}), m.Name)
	case strings.HasPrefix(m.MIME, "text/") && !wire.IsBlank(string(m.Data)):
		return titled(sdk.NewDocumentBlock(sdk.PlainTextSourceParam{Data: string(m.Data)}), m.Name)
	default:
		return sdk.NewTextBlock(wire.FileNotice(m))
	}
}

// imageOf returns an image, or a text in its place if it is too large for the service.
func imageOf(m *belay.Media, kind string) sdk.ContentBlockParamUnion {
	size, _, _ := image.DecodeConfig(bytes.NewReader(m.Data)) // if the size cannot be read, the service decides
	if base64.StdEncoding.EncodedLen(len(m.Data)) > mostEncoded || max(size.Width, size.Height) > mostPixels {
		return sdk.NewTextBlock(fmt.Sprintf("[An image that cannot be shown, since it is too large: name %q, type %q, %d bytes, %d x %d pixels]", m.Name, kind, len(m.Data), size.Width, size.Height))
	}
	return sdk.NewImageBlockBase64(kind, base64.StdEncoding.EncodeToString(m.Data))
}

// titled sets the title of a document to the name of its file.
func titled(document sdk.ContentBlockParamUnion, name string) sdk.ContentBlockParamUnion {
	if name != "" {
		document.OfDocument.Title = param.NewOpt(name)
	}
	return document
}
