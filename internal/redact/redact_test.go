package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/redact"
)

// planted is a secret that has no known form.
const planted = "hunter2-planted"

// places are texts that contain a secret. § stands for the secret.
var places = []string{
	`curl -H "Authorization: Bearer §" https://api.example`,
	`curl -H 'authorization: basic §' https://api.example`,
	`curl -H 'Authorization: token §'`,
	`curl -H 'Proxy-Authorization: §'`,
	`curl --header="X-Api-Key: §"`,
	`curl -H "PRIVATE-TOKEN: §"`,
	`curl -H "Cookie: session=§; theme=dark"`,
	`curl -u ann:§ https://api.example`,
	`curl --user ann:§ https://api.example`,
	`curl -uann:§ https://api.example`,
	`["curl","-u","ann:§"]`,
	`the bearer token § is sent`,
	`Bearer §`,
	`bearer: §`,
	`git clone https://ann:§@git.example/x.git`,
	`git clone https://:§@git.example/x.git`,
	`psql postgres://belay:§@db.example:5432/belay?sslmode=require`,
	`redis-cli -u redis://:§@cache.example/0`,
	`git clone https://§:x-oauth-basic@github.com/x/y`,
	`git clone https://§:@github.com/x/y`,
	`TOKEN=§ make release`,
	`export AWS_SECRET_ACCESS_KEY=§; make`,
	`export DB_PASSWORD="§"`,
	`export DB_PASSWORD='§'`,
	`deploy --token § --verbose`,
	`deploy --api-key=§`,
	`deploy -password §`,
	`["deploy","--token","§"]`,
	`["deploy", "--token=§"]`,
	`{"password":"§","user":"ann"}`,
	`{"dbPassword": "§"}`,
	`{"command":"curl -d '{\"client_secret\":\"§\"}'"}`,
	`"{\"command\":\"export TOKEN=\\\"§\\\"\"}"`,
	`https://api.example/v1?access_token=§&page=2`,
	`password: §`,
	`the passphrase = §`,
	"-----BEGIN OPENSSH PRIVATE KEY-----\n§\n-----END OPENSSH PRIVATE KEY-----",
	"-----BEGIN RSA PRIVATE KEY-----\n§ and then it was cut",
}

// keys are secrets that are recognised by their form, in any text.
var keys = []string{
	"sk-ant-api03-Abc_123-xyz", "sk-proj-abcdefgh12345678", "sk_live_abcdefgh1234",
	"ghp_abcdefghijkl123456", "gho_abcdefghijkl123456", "github_pat_11ABC_defgh", "glpat-abcd-1234efgh",
	"AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "AIzaSyA-1234567890abcdefghijklmnop",
	"xoxb-123456789012-abcdef", "xoxp-123456789012-abcdef",
	"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27", "npm_abcdefghijklmnop1234", "hf_abcdefghijklmnopqr",
}

// SPEC J-02, P-18
func TestSecretsGo(t *testing.T) {
	t.Parallel()
	for _, place := range places {
		for _, secret := range []string{planted, "p", "päss=w0rd", "a,b", "t0ken.with-dots_and/slashes=="} {
			if strings.Contains(place, "://") && strings.Contains(secret, "/") {
				continue // the slash would end the user name in a URL
			}
			text := strings.ReplaceAll(place, "§", secret)
			got := redact.Text(text)
			if got == text || len(secret) > 3 && strings.Contains(got, secret) {
				t.Errorf("%s\nbecomes\n%s", text, got)
			}
		}
	}
	for _, key := range keys {
		for _, around := range [][2]string{{"", ""}, {"echo ", " | gh auth login"}, {`"`, `"`}, {"x=", ";"}, {"(", ")"}, {"https://", "@github.com"}} {
			text := around[0] + key + around[1]
			if got := redact.Text(text); strings.Contains(got, key[len(key)-8:]) {
				t.Errorf("%s becomes %s", text, got)
			}
		}
	}
	login := base64.StdEncoding.EncodeToString([]byte("ann:" + planted))
	if got := redact.Text("it sends Basic " + login); strings.Contains(got, login) {
		t.Errorf("basic authentication becomes %s", got)
	}
}

// The text around a secret stays readable. Texts without secrets are not changed.
func TestTheRestStays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`curl -H "Authorization: Bearer abc" https://api.example`: `curl -H "Authorization: Bearer [REDACTED]" https://api.example`,
		`git push https://ann:pw@git.example/x.git main`:          `git push https://ann:[REDACTED]@git.example/x.git main`,
		`TOKEN=abc make release`:                                  `TOKEN=[REDACTED] make release`,
		`deploy --token abc --force`:                              `deploy --token [REDACTED] --force`,
		`{"password":"abc","user":"ann"}`:                         `{"password":"[REDACTED]","user":"ann"}`,
		`curl -u ann:abc https://api.example`:                     `curl -u ann:[REDACTED] https://api.example`,
		`https://api.example/?access_token=abc&page=2`:            `https://api.example/?access_token=[REDACTED]&page=2`,
	} {
		if got := redact.Text(text); got != want {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", text, got, want)
		}
	}
	for _, text := range []string{
		"", "shell: git push --force: zone 4 network (sends to another machine), and standard mode asks above zone 2",
		"ssh git@github.com:belay-run/belay.git", "https://user@host.example/path", "https://host.example:8443/path@v1.2.3",
		"docker run -u 1000:1000 alpine", "basic knowledge of basic permissions", "monkeys and tokens", "sort --keys", "deploy --token --force",
		`curl -H "Authorization: $AUTH"`, `TOKEN=$(cat token.txt) make`, `TOKEN="$TOKEN" make`, `TOKEN=${TOKEN} make`,
		`max_tokens: 4096`, "PWD=/srv/app", "risk-assessment-of-the-year", "tokenizer: fast",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%q becomes %q, want it as it is", text, got)
		}
	}
	if got := redact.Text(`PASSWORD='$ecret'`); strings.Contains(got, "ecret") {
		t.Errorf("a password that looks like a variable becomes %s", got)
	}
}

// Text removes a secret whatever text surrounds it, and however often it is wrapped in
// JSON. A second call changes nothing.
func FuzzText(f *testing.F) {
	for i := range places {
		f.Add("so ", " on", uint8(i), uint8(i%4))
	}
	f.Fuzz(func(t *testing.T, before, behind string, which, wrapped uint8) {
		place := places[int(which)%len(places)]
		text := before + "\n" + strings.ReplaceAll(place, "§", planted)
		if !strings.Contains(place, "PRIVATE KEY") {
			text += "\n" + behind
		}
		for range wrapped % 4 {
			data, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		got := redact.Text(text)
		if strings.Contains(got, planted) && !strings.Contains(before+behind, planted) {
			t.Errorf("%q becomes %q", text, got)
		}
		if again := redact.Text(got); again != got {
			t.Errorf("%q becomes %q and then %q", text, got, again)
		}
	})
}

func TestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"TOKEN": true, "GITHUB_TOKENS": true, "apiKey": true, "--api-key": true, "db.password": true, "PAT": true, "MY_PAT2": true,
		"PATH": false, "COMPAT": false, "PWD": false, "SSH_AUTH_SOCK": false, "GIT_ASKPASS": false, "keyboard": false, "name": false, "": false,
	} {
		if got := redact.Name(name); got != want {
			t.Errorf("%q is called like a secret: %t, want %t", name, got, want)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, want string }{
		{"password", "hunter2", redact.Mark},
		{"db.password", "two words", redact.Mark},
		{"api_key", "$KEY", redact.Mark}, // nothing expands it
		{"password", "", ""},
		{"token", "true", "true"},
		{"max_tokens", "4096", "4096"},
		{"reason", "TOKEN=hunter2 make", "TOKEN=" + redact.Mark + " make"},
		{"reason", "it deletes", "it deletes"},
	} {
		if got := redact.Value(test.name, test.value); got != test.want {
			t.Errorf("%s=%q becomes %q, want %q", test.name, test.value, got, test.want)
		}
	}
}
