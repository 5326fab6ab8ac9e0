package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
)

// Mistakes in channels are reported with file and line, and never repeat a secret.
//
// SPEC N-02
func TestChannelMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, user, project, want string }{
		{"channels have names", "channels: [slack]\n", "", "belay.yaml:1: channels: expected names with settings"},
		{"a name is a name of a file", "channels:\n  ../x: {kind: webhook}\n", "", `belay.yaml:2: channels: "../x" is not a valid name`},
		{"a kind is required", "channels:\n  team: {to: C1}\n", "", "belay.yaml:2: channels.team: kind is missing: use slack, telegram, webhook"},
		{"a kind exists", "channels:\n  team: {kind: slak}\n", "", "channels.team: kind: "},
		{"Slack needs both tokens", "channels:\n  team: {kind: slack, to: C1, token_env: BOT, approvers: [U1]}\n", "", "channels.team: app_token_env or app_token_file is missing: a channel of kind slack needs it"},
		{"somebody must decide", "channels:\n  team: {kind: telegram, to: \"1\", token_env: BOT}\n", "", "channels.team: approvers is missing"},
		{"a channel is an id", slackTo("'#ops'", "U1"), "", `channels.team: to: "#ops" is not an id of slack: write the id, such as C0123456789, at the end of`},
		{"a name of a channel is not an id", slackTo("ops", "U1"), "", `channels.team: to: "ops" is not an id`},
		{"a person is an id", slackTo("C1", "U1, '@ann'"), "", `channels.team: approvers: "@ann" is not the id of a person in slack: write the id, such as U0123456789`},
		{"a channel is not a person", slackTo("C1", "C2"), "", `channels.team: approvers: "C2" is not the id of a person`},
		{"a list of approvers has somebody", slackTo("C1", ""), "", "channels.team: approvers: the list is empty, so nobody could decide"},
		{"a chat is a number", "channels:\n  t: {kind: telegram, to: '@ops', token_env: BOT, approvers: ['1']}\n", "", `channels.t: to: "@ops" is not an id of telegram: write the id, such as "-1001234567890" for a group`},
		{"a person is a number", "channels:\n  t: {kind: telegram, to: '-100', token_env: BOT, approvers: ['@ann']}\n", "", `channels.t: approvers: "@ann" is not the id of a person in telegram`},
		{"a group is not a person", "channels:\n  t: {kind: telegram, to: '-100', token_env: BOT, approvers: ['-100']}\n", "", `channels.t: approvers: "-100" is not the id of a person`},
		{"nobody decides in a webhook", "channels:\n  p: {kind: webhook, url: \"https://x\", secret_env: S, approvers: [a]}\n", "", "channels.p: approvers: a channel of kind webhook has no such setting"},
		{"a secret is not in the file", "channels:\n  p: {kind: webhook, url: \"https://x\", secret: hush}\n", "", "channels.p: secret: a secret must not be in settings"},
		{"a token is not in the file", "channels:\n  p: {kind: slack, app_token: xapp-hush}\n", "", "channels.p: app_token: a secret must not be in settings"},
		{"a token is not the name of a variable", "channels:\n  p: {kind: slack, token_env: xoxb-hush}\n", "", "token_env: the value is not the name of a variable in capitals"},
		{"a secret has one place", "channels:\n  p: {kind: webhook, url: \"https://x\", secret_env: S, secret_file: f}\n", "", "channels.p: a secret has both a variable and a file"},
		{"an unknown key is named", "channels:\n  p: {kind: webhook, ulr: x}\n", "", `channels.p: unknown key "ulr" (did you mean "url"?)`},
		{"a project does not say who is asked", "", "channels:\n  p: {kind: webhook}\n", "channels: a project cannot decide who is asked for approvals, and where"},
		{"an address is one", "serve: {url: belay}\n", "", "serve.url: the value is not a URL"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(files(t, test.user, test.project))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
		})
	}
}

// A secret comes from a variable or a file.
func TestSecretsOfChannels(t *testing.T) {
	t.Parallel()
	o := files(t, "", "")
	file := filepath.Join(o.Dir, "secret")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Environ = []string{"HUSH=from a variable"}
	l := load(t, o)
	for _, test := range []struct {
		secret     config.Secret
		want, fail string
	}{
		{config.Secret{Env: "HUSH"}, "from a variable", ""},
		{config.Secret{Env: "OTHER"}, "", "x: the variable OTHER is not set"},
		{config.Secret{File: file}, "from a file", ""},
		{config.Secret{File: file + "s"}, "", "x: open "},
	} {
		got, err := l.Read("x", test.secret)
		if got != test.want || (err == nil) != (test.fail == "") || err != nil && !strings.Contains(err.Error(), test.fail) {
			t.Errorf("%+v: %q, %v", test.secret, got, err)
		}
	}
}

// slackTo is a channel of Slack with a destination and approvers.
func slackTo(to, approvers string) string {
	return "channels:\n  team: {kind: slack, to: " + to + ", token_env: BOT, app_token_env: APP, approvers: [" + approvers + "]}\n"
}
