package wire_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

func TestImageType(t *testing.T) {
	t.Parallel()
	png := []byte("\x89PNG\r\n\x1a\n")
	for _, test := range []struct {
		rule string
		m    belay.Media
		want string
	}{
		{"the bytes decide", belay.Media{MIME: "image/jpeg", Data: png}, "image/png"},
		{"else the declared type", belay.Media{MIME: "image/webp", Data: []byte("?")}, "image/webp"},
		{"jpg is jpeg", belay.Media{MIME: "image/jpg"}, "image/jpeg"},
		{"other images are not accepted", belay.Media{MIME: "image/bmp"}, ""},
		{"a file that is not declared as an image is none", belay.Media{MIME: "text/plain", Data: png}, ""},
	} {
		if got := wire.ImageType(&test.m); got != test.want {
			t.Errorf("%s: got %q, want %q", test.rule, got, test.want)
		}
	}
}
