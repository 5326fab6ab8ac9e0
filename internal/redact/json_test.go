package redact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
		`{"token":123,"other":"PASSWORD=abc"}`:                `{"token":"[REDACTED]","other":"PASSWORD=[REDACTED]"}`,
		`"sk-proj-abcdefgh12345678"`:                          `"[REDACTED]"`,
		`{"password": "abc`:                                   `"{\"password\": \"[REDACTED]"`,
		`{"a":1} {"password":"abc"}`:                          `"{\"a\":1} {\"password\":\"[REDACTED]\"}"`,

		// everything below the name of a secret
		`{"passwords":["abc",{"old":[1.50]}],"n":1.50}`:               `{"passwords":["[REDACTED]",{"old":["[REDACTED]"]}],"n":1.50}`,
		`{"credentials":{"user":"ann","value":"abc","admin":true}}`:   `{"credentials":{"user":"[REDACTED]","value":"[REDACTED]","admin":true}}`,
		`{"password":{"tokens":5},"tokens":{"password":6}}`:           `{"password":{"tokens":"[REDACTED]"},"tokens":{"password":"[REDACTED]"}}`,
		`{"max_tokens":4096,"auth":"none","token":null}`:              `{"max_tokens":4096,"auth":"none","token":null}`,
		`{"auth":{"type":"bearer","value":"$TOKEN","note":""}}`:       `{"auth":{"type":"bearer","value":"$TOKEN","note":""}}`,
		`{"a":"sk-proj-abcdefgh12345678","a":"b"}`:                    `{"a":"[REDACTED]","a":"b"}`, // the decoded value has only the last one
		`{"sk-proj-abcdefgh12345678":"on","https://ann:abc@x.dev":1}`: `{"[REDACTED]":"on","https://ann:[REDACTED]@x.dev":1}`,

		// after a flag
		`["--token",12345,"--password","abc","--n",5]`:               `["--token","[REDACTED]","--password","[REDACTED]","--n",5]`,
		`["--token",["abc",1],"--max-tokens",5]`:                     `["--token",["[REDACTED]","[REDACTED]"],"--max-tokens",5]`,
		`["--token","a\"b c\\","--key","--force","x"]`:               `["--token","[REDACTED]","--key","--force","x"]`,
		`["curl","-u","ann:abc","-H","Authorization:","abc","x"]`:    `["curl","-u","[REDACTED]","-H","Authorization:","[REDACTED]","x"]`,
		`["sh","-c","export TOKEN=$TOKEN\nmake","--token","$TOKEN"]`: `["sh","-c","export TOKEN=$TOKEN\nmake","--token","$TOKEN"]`,
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

// plantedNumber is a secret that is a number.
const plantedNumber = 918273645

// tree draws a JSON value. Secrets are planted below names of secrets, after flags and in names of
// fields, and nowhere else.
func tree(t *rapid.T, depth int, secret bool) any {
	names := rapid.SampledFrom([]string{"a", "path", "user", "max_tokens", "ключ"})
	secretNames := rapid.SampledFrom([]string{"passwords", "apiKey", "x-auth-token", "credentials", "secrets", "DB password"})
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case depth > 0 && kind < 3:
		object := make(map[string]any)
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			if rapid.Bool().Draw(t, "secret name") {
				object[secretNames.Draw(t, "name")] = tree(t, depth-1, true)
			} else {
				object[names.Draw(t, "name")] = tree(t, depth-1, secret)
			}
		}
		if rapid.Bool().Draw(t, "secret in a name") {
			object[keys[rapid.IntRange(0, len(keys)-1).Draw(t, "key")]] = tree(t, depth-1, secret)
		}
		return object
	case depth > 0 && kind < 6:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			if rapid.Bool().Draw(t, "flag") {
				list = append(list, rapid.SampledFrom([]string{"--token", "-password", "Authorization:", "API_KEY ="}).Draw(t, "flag"), tree(t, depth-1, true))
			} else {
				list = append(list, tree(t, depth-1, secret))
			}
		}
		return list
	case secret && kind%2 == 0:
		return plantedNumber
	case secret:
		return rapid.StringMatching(`([a-z" \n\\;&]{0,3})`).Draw(t, "before") + planted + rapid.String().Draw(t, "after")
	default:
		return rapid.SampledFrom([]any{"b", "", "make\nTOKEN=$TOKEN", "--force", 1.5, true, nil, "\"", "none"}).Draw(t, "harmless")
	}
}

// No secret is left below a name of a secret, after a flag or in a name of a field, whatever is
// around it. The result has the shape of the value, and JSON does not change the result again.
//
// SPEC J-02
func TestJSONLeavesNoSecret(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value, err := json.Marshal(tree(t, 4, false))
		if err != nil {
			t.Fatal(err)
		}
		got := string(redact.JSON(value))
		for _, secret := range append([]string{planted, fmt.Sprint(plantedNumber)}, keys...) {
			if strings.Contains(got, secret) {
				t.Errorf("%s\nbecomes\n%s\nwith %s", value, got, secret)
			}
		}
		if again := string(redact.JSON(json.RawMessage(got))); again != got {
			t.Errorf("%s becomes %s and then %s", value, got, again)
		}
		sameShape(t, value)
	})
}

// sameShape checks that redacting a value changes nothing but texts, numbers and names. What is no
// JSON becomes a text.
func sameShape(t rapid.TB, value json.RawMessage) {
	t.Helper()
	got := redact.JSON(value)
	want := "x "
	if json.Valid(value) || len(value) == 0 {
		want = shape(value)
	}
	if after := shape(got); after != want || !json.Valid(got) && len(value) > 0 {
		t.Errorf("%q\nbecomes\n%q\nwith the shape\n%s\nwant\n%s", value, got, after, want)
	}
}

// shape returns a JSON value with x for each text, number and name.
func shape(value json.RawMessage) string {
	var b strings.Builder
	for d := json.NewDecoder(bytes.NewReader(value)); ; {
		d.UseNumber()
		switch token, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return b.String()
		case err != nil:
			return err.Error()
		default:
			switch token.(type) {
			case string, json.Number:
				token = "x"
			}
			fmt.Fprint(&b, token, " ")
		}
	}
}

// JSON keeps the shape of every value.
func FuzzJSON(f *testing.F) {
	for _, place := range places {
		for _, text := range []string{place, `{"a":[` + place + `]}`, `{"tokens":{"b":` + place + `}}`} {
			f.Add([]byte(strings.ReplaceAll(text, "§", planted)))
		}
	}
	f.Add([]byte(`{"password":[1,{"a":"b"}],"sk-proj-abcdefgh12345678":["--token",5,"-u","a:b"]}`))
	f.Fuzz(func(t *testing.T, value []byte) { sameShape(t, value) })
}
