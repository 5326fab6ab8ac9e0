package gemini

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// mediaTypes are the types of images, audio, video and documents that the service accepts.
var mediaTypes = []string{
	"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif",
	"application/pdf",
	"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
	"video/mp4", "video/mpeg", "video/quicktime", "video/mov", "video/avi", "video/x-flv", "video/mpg", "video/webm", "video/wmv", "video/3gpp",
}

// resultTypes are the types that the service accepts inside the result of a call.
var resultTypes = []string{"image/png", "image/jpeg", "image/webp", "application/pdf"}

// asItIs returns an image with its real type. It looks at the data first, because tools
// often declare a wrong type.
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

// mediaOf returns an image or a file as parts, with its name before it. For a file that the
// service does not accept, it returns a text about the file.
func mediaOf(m *belay.Media) []part {
	var p part
	switch {
	case slices.Contains(mediaTypes, m.MIME) && len(m.Data) > 0:
		p.InlineData = &blob{MIMEType: m.MIME, Data: m.Data}
	case slices.Contains(mediaTypes, m.MIME) && m.URL != "":
		p.FileData = &fileData{MIMEType: m.MIME, FileURI: m.URL}
	case strings.HasPrefix(m.MIME, "text/") && !wire.IsBlank(string(m.Data)):
		p.InlineData = &blob{MIMEType: "text/plain", Data: []byte(strings.ToValidUTF8(string(m.Data), "\uFFFD"))}
	default:
		return []part{textPart(wire.FileNotice(m))}
	}
	if m.Name == "" {
		return []part{p}
	}
	// The service has no field for the name.
	return []part{textPart(fmt.Sprintf("[The file %q:]", m.Name)), p}
}

func textPart(text string) part { return part{Text: &text} }

// withinResult returns an image or a document in the form for the result of a call. It
// returns nil if the service does not accept the media there.
func (m *Model) withinResult(media *belay.Media) *blob {
	if !m.newer || !slices.Contains(resultTypes, media.MIME) || len(media.Data) == 0 {
		return nil
	}
	return &blob{MIMEType: media.MIME, Data: media.Data}
}
