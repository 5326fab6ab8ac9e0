package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
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

// Nothing is left to replace the second time, and valid JSON stays valid and as long.
func FuzzReplaceLoneSurrogates(f *testing.F) {
	f.Add(`{"a":"\ud83d\ude00\ud83d"}`)
	f.Fuzz(func(t *testing.T, text string) {
		once := wire.ReplaceLoneSurrogates([]byte(text))
		if twice := wire.ReplaceLoneSurrogates(once); string(twice) != string(once) {
			t.Errorf("%q became %q and then %q", text, once, twice)
		}
		if len(once) != len(text) || json.Valid([]byte(text)) != json.Valid(once) {
			t.Errorf("%q became %q", text, once)
		}
	})
}

func TestInputs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ input, want string }{
		{`{"a":1}`, `{"a":1}`}, {" \n{}", " \n{}"}, {`{"a":"\ud83d"}`, `{"a":"\ufffd"}`},
		{``, `{}`}, {`null`, `{}`}, {`[{}]`, `{}`}, {`{"a"`, `{}`}, {`{} {}`, `{}`},
	} {
		if got := string(wire.Object(json.RawMessage(test.input))); got != test.want {
			t.Errorf("Object(%s) = %s, want %s", test.input, got, test.want)
		}
	}
	for _, test := range []struct {
		rule, input     string
		cut             bool
		want, malformed string
	}{
		{"an object is the input", `{"a":1}`, false, `{"a":1}`, ""},
		{"a missing input is empty", ``, false, `{}`, ""},
		{"a missing input at a cut is malformed", ``, true, `{}`, "{"},
		{"half an input is malformed", `{"a`, true, `{}`, `{"a`},
	} {
		call := wire.Call("c", "look", []byte(test.input), test.cut)
		if call.ID != "c" || call.Tool != "look" || string(call.Input) != test.want || call.Malformed != test.malformed {
			t.Errorf("%s: got %+v", test.rule, call)
		}
	}
}

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
