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

// ImageType returns the type of an image if it is one that Anthropic and OpenAI accept, and
// otherwise an empty string. The first bytes of the data decide, and the declared type only
// if they do not: tools declare wrong types, and services reject those.
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

// FileNotice returns the text that the model gets in place of a file that the service does
// not accept.
func FileNotice(m *belay.Media) string {
	return fmt.Sprintf("[A file that cannot be shown: name %q, type %q, %d bytes, address %q]", m.Name, m.MIME, len(m.Data), m.URL)
}
