package gemini_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/internal/wiretest"
)

// answering returns a client that gets a text in the given number of pieces.
func answering(pieces int) *http.Client {
	var b bytes.Buffer
	for i := range pieces {
		b.WriteString(event(parts(fmt.Sprintf(`{"text":"piece %d "}`, i))))
	}
	b.WriteString(event(stopped("STOP")))
	return &http.Client{Transport: &wiretest.Canned{ContentType: "text/event-stream", Body: b.Bytes()}}
}

func BenchmarkStream(b *testing.B) {
	client := answering(50)
	wiretest.BenchmarkStream(b, client, gemini.New("m", &gemini.Options{Key: "k", HTTPClient: client}))
}
