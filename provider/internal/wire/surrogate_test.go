package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/belay-run/belay/provider/internal/wire"
)

func TestReplaceLoneSurrogates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{`"plain"`, `"plain"`},
		{`"\u00e4"`, `"\u00e4"`},
		{`"\ud83d\ude00"`, `"\ud83d\ude00"`},
		{`"\ud83d"`, `"\ufffd"`},
		{`"\ude00"`, `"\ufffd"`},
		{`"\ud83d\ud83d\ude00"`, `"\ufffd\ud83d\ude00"`},
		{`"\ud83dx\ude00"`, `"\ufffdx\ufffd"`},
		{`"\\ud83d"`, `"\\ud83d"`},
		{`"\\\ud83d"`, `"\\\ufffd"`},
		{`"\ud8`, `"\ud8`},
	} {
		raw := []byte(test.text)
		if got := string(wire.ReplaceLoneSurrogates(raw)); got != test.want || string(raw) != test.text {
			t.Errorf("got %s, want %s, and the input unchanged: %s", got, test.want, raw)
		}
	}
}

// A second call must change nothing. Valid JSON must stay valid and keep its length.
func FuzzReplaceLoneSurrogates(f *testing.F) {
	f.Add(`{"a":"\ud83d\ude00\ud83d"}`)
	f.Fuzz(func(t *testing.T, text string) {
		once := wire.ReplaceLoneSurrogates([]byte(text))
		if twice := wire.ReplaceLoneSurrogates(once); !bytes.Equal(twice, once) {
			t.Errorf("%q became %q and then %q", text, once, twice)
		}
		if len(once) != len(text) || json.Valid([]byte(text)) != json.Valid(once) {
			t.Errorf("%q became %q", text, once)
		}
	})
}
