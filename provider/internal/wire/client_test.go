package wire_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/provider/internal/wire"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"localhost:1", "ftp://localhost", "http://[", "https://", "https://user:\x7fsecret@host", "ftp://user:secret@host"} {
		_, err := wire.ParseURL(address, "https://host")
		if err == nil || !strings.HasPrefix(err.Error(), "Options.URL: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want an error about Options.URL without the password", address, err)
		}
	}
	if u, err := wire.ParseURL("http://localhost:11434/v1", ""); err != nil || u.Host != "localhost:11434" {
		t.Errorf("got %v, %v, want the address", u, err)
	}
}
