package assembly

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"github.com/belay-run/belay"
)

// SPEC U-02
// The chat warns about exactly those images of which a model of Anthropic gets only a note.
func TestImageTooLarge(t *testing.T) {
	t.Parallel()
	var wide bytes.Buffer
	if err := png.Encode(&wide, image.NewGray(image.Rect(0, 0, 8001, 1))); err != nil {
		t.Fatal(err)
	}
	s := load(t, "", "")
	for _, test := range []struct {
		rule, model string
		data        []byte
		want        string
	}{
		{"the largest image", "anthropic/claude-x", make([]byte, 5<<20/4*3), ""},
		{"a byte more", "anthropic/claude-x", make([]byte, 5<<20/4*3+1), "it has 3.75 MB, and anthropic accepts 3.75 MB"},
		{"the limit of the chat", "anthropic/claude-x", make([]byte, 5<<20), "it has 5.00 MB, and anthropic accepts 3.75 MB"},
		{"too many pixels", "anthropic/claude-x", wide.Bytes(), "it has 8001 x 1 pixels, and anthropic accepts 8000 per side"},
		{"another provider", "openai/gpt-x", make([]byte, 5<<20), ""},
		{"an unknown provider", "nobody/x", make([]byte, 5<<20), ""},
		{"no provider", "x", make([]byte, 5<<20), ""},
	} {
		if got := ImageTooLarge(s, test.model, &belay.Media{MIME: "image/png", Data: test.data}); got != test.want {
			t.Errorf("%s: it says %q, want %q", test.rule, got, test.want)
		}
	}
}
