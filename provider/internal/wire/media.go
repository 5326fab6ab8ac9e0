package wire

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// imageTypes are the image types that Anthropic and OpenAI accept.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// ImageType returns the MIME type of an image, or an empty string if Anthropic and OpenAI
// do not accept it. It looks at the data first, because tools often declare a wrong type
// and services reject a wrong type. It uses the declared type only if the data does not
// show the type.
func ImageType(m *belay.Media) string {
	if !strings.HasPrefix(m.MIME, "image/") {
		return ""
	}
	if detected := http.DetectContentType(m.Data); slices.Contains(imageTypes, detected) {
		return detected
	}
	if m.MIME == "image/jpg" {
		return "image/jpeg"
	}
	if slices.Contains(imageTypes, m.MIME) {
		return m.MIME
	}
	return ""
}

// FileNotice returns a text about a file that the service does not accept. The model gets
// this text instead of the file.
func FileNotice(m *belay.Media) string {
	return fmt.Sprintf("[A file that cannot be shown: name %q, type %q, %d bytes, address %q]", m.Name, m.MIME, len(m.Data), m.URL)
}
