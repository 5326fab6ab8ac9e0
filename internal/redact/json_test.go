package redact_test

import (
	"encoding/json"
	"testing"

	"github.com/belay-run/belay/internal/redact"
)

// SPEC J-02
func TestJSON(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		``:                             ``,
		`{"path": "a.txt", "n": 1.0}`:  `{"path": "a.txt", "n": 1.0}`, // as it was sent
		`{"command":"TOKEN=abc make"}`: `{"command":"TOKEN=[REDACTED] make"}`,
		`{"b":12345678901234567890,"password":"abc"}`:         `{"b":12345678901234567890,"password":"[REDACTED]"}`,
		`{"argv":["deploy","--token","abc","<x>"]}`:           `{"argv":["deploy","--token","[REDACTED]","<x>"]}`,
		`{"header":{"authorization":"Bearer abc"},"n":[1,2]}`: `{"header":{"authorization":"[REDACTED]"},"n":[1,2]}`,
		`{"token":123,"other":"PASSWORD=abc"}`:                `{"other":"PASSWORD=[REDACTED]","token":"[REDACTED]"}`,
		`"sk-proj-abcdefgh12345678"`:                          `"[REDACTED]"`,
		`{"password": "abc`:                                   `"{\"password\": \"[REDACTED]"`,
	} {
		got := redact.JSON(json.RawMessage(value))
		if string(got) != want {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", value, got, want)
		}
		if again := redact.JSON(got); string(again) != string(got) {
			t.Errorf("%s becomes %s and then %s", value, got, again)
		}
	}
}
