package assembly

import (
	"bytes"
	"fmt"
	"image"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/provider/anthropic"
)

// ImageTooLarge says why a model does not get an image, with the size of the image, or returns "".
// The model is named like the setting model. It knows nothing about a model without a known
// provider.
func ImageTooLarge(s *config.Loaded, model string, m *belay.Media) string {
	name, _, named := strings.Cut(model, "/")
	if !named || m == nil {
		return ""
	}
	p, err := s.Provider(name)
	if err != nil || p.Kind != config.KindAnthropic {
		return "" // the other providers accept more than the chat sends
	}
	size, _, _ := image.DecodeConfig(bytes.NewReader(m.Data)) // 0 x 0 if the format is unknown
	switch {
	case len(m.Data) > anthropic.MaxImageBytes:
		return fmt.Sprintf("it has %s, and %s accepts %s", megabytes(len(m.Data)), p.Name, megabytes(anthropic.MaxImageBytes))
	case max(size.Width, size.Height) > anthropic.MaxImagePixels:
		return fmt.Sprintf("it has %d x %d pixels, and %s accepts %d per side", size.Width, size.Height, p.Name, anthropic.MaxImagePixels)
	default:
		return ""
	}
}

func megabytes(n int) string { return fmt.Sprintf("%.2f MB", float64(n)/(1<<20)) }
