package gemini

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// mediaTypes are the images, sounds, films and documents that the service looks
// at.
var mediaTypes = []string{
	"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif",
	"application/pdf",
	"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
	"video/mp4", "video/mpeg", "video/quicktime", "video/mov", "video/avi", "video/x-flv", "video/mpg", "video/webm", "video/wmv", "video/3gpp",
}

// resultTypes are those that it looks at within a result.
var resultTypes = []string{"image/png", "image/jpeg", "image/webp", "application/pdf"}

// asItIs returns an image with the type that it is of. The first bytes count before the
// name, which tools get wrong.
func asItIs(m *belay.Media) *belay.Media {
	if !strings.HasPrefix(m.MIME, "image/") {
		return m
	}
	kind := m.MIME
	if seen := http.DetectContentType(m.Data); strings.HasPrefix(seen, "image/") {
		kind = seen
	} else if kind == "image/jpg" {
		kind = "image/jpeg"
	}
	if kind == m.MIME {
		return m
	}
	corrected := *m
	corrected.MIME = kind
	return &corrected
}

// mediaOf returns an image or a file, with its name before it, or a text that
// says what cannot be shown.
func mediaOf(m *belay.Media) []part {
	var p part
	switch {
	case slices.Contains(mediaTypes, m.MIME) && len(m.Data) > 0:
		p.InlineData = &sdk.Blob{MIMEType: m.MIME, Data: m.Data}
	case slices.Contains(mediaTypes, m.MIME) && m.URL != "":
		p.FileData = &sdk.FileData{MIMEType: m.MIME, FileURI: m.URL}
	case strings.HasPrefix(m.MIME, "text/") && !wire.IsBlank(string(m.Data)):
		p.InlineData = &sdk.Blob{MIMEType: "text/plain", Data: []byte(strings.ToValidUTF8(string(m.Data), "\uFFFD"))}
	default:
		return []part{textPart(wire.FileNotice(m))}
	}
	if m.Name == "" {
		return []part{p}
	}
	// The service has no place for the name.
	return []part{textPart(fmt.Sprintf("[The file %q:]", m.Name)), p}
}

func textPart(text string) part { return part{Text: &text} }

// withinResult returns an image or a document that goes into the result of a
// call, or nil.
func (m *Model) withinResult(media *belay.Media) *sdk.FunctionResponseBlob {
	if !m.newer || !slices.Contains(resultTypes, media.MIME) || len(media.Data) == 0 {
		return nil
	}
	return &sdk.FunctionResponseBlob{MIMEType: media.MIME, Data: media.Data}
}
