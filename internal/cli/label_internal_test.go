package cli

import (
	"encoding/json"
	"testing"
)

func TestPlainJSON(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"a":"x \u003e y \u0026\u0026 \u003C z"}`: `{"a":"x > y && < z"}`,
		`{"a":"\\u003e"}`:                          `{"a":"\\u003e"}`,
		`{"a":"\\\u003e"}`:                         `{"a":"\\>"}`,
		`{"a":"\u001b\n\""}`:                       `{"a":"\u001b\n\""}`,
		`"\`:                                       `"\`,
		``:                                         ``,
	} {
		if got := plainJSON(json.RawMessage(input)); got != want {
			t.Errorf("%s is shown as %s, want %s", input, got, want)
		}
	}
}
