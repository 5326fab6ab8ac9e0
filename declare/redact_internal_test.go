package declare

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// SPEC C-11
func TestRedactOverlapping(t *testing.T) {
	t.Parallel()
	r := newRedactor([]string{"abcd", "cdef", "abc", " trimmed\n"})
	for text, want := range map[string]string{
		"xabcdefx": "x[REDACTED]x", "abcdabcd": "[REDACTED][REDACTED]", "abc": "abc", "a trimmed": "a [REDACTED]", "": "",
	} {
		if got := r.text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// SPEC C-11
func TestRedactKeepsJSONAsItIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringOfN(rapid.Rune(), 4, 8, -1).Draw(t, "secret")
		if strings.Contains(redacted, secret) {
			return
		}
		value := map[string]any{
			rapid.String().Draw(t, "key"): []any{rapid.String().Draw(t, "a") + secret + rapid.String().Draw(t, "b"), true, nil, 1.5},
		}
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		clean, err := newRedactor([]string{secret}).json(data)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string][]any
		if err := json.Unmarshal(clean, &back); err != nil || len(back) != 1 {
			t.Fatalf("%s became %s: %v", data, clean, err)
		}
		for key, list := range back {
			if text, _ := list[0].(string); len(list) != 4 || strings.Contains(text, secret) || strings.Contains(key, secret) {
				t.Fatalf("%s became %s, with the secret %q", data, clean, secret)
			}
		}
	})
}
