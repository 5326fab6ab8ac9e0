package assembly

import (
	"slices"
	"testing"
)

// The tokens of channels are secrets of the host, like the keys of providers: declared hooks do not
// reveal them, and commands get no variable that has them, whatever its name is.
//
// SPEC N-02
func TestChannelTokensAreSecrets(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "providers:\n  work: {url: 'http://127.0.0.1:9/v1', key_file: ../../project/key}\nchannels:\n  ops: {kind: telegram, to: '7', token_file: ../../project/token, approvers: ['1']}\n  gone: {kind: webhook, url: 'http://127.0.0.1:9/', secret_file: ../../project/none}\n", map[string]string{
		"key":   "sk-hidden",
		"token": "4711:hidden-token\n",
	})
	secrets := hostSecrets(r.floor.settings)
	slices.Sort(secrets)
	if want := []string{"4711:hidden-token", "sk-hidden"}; !slices.Equal(secrets, want) {
		t.Errorf("the secrets are %q, want %q", secrets, want)
	}
	holds := holdsKey(r.floor.settings)
	for variable, want := range map[string]bool{"COPY=4711:hidden-token": true, "URL=https://x/bot4711:hidden-token/": true, "HOME=/root": false} {
		if holds(variable) != want {
			t.Errorf("%s: %v, want %v", variable, !want, want)
		}
	}
}

// Commands and hooks get no credentials of the collector.
//
// SPEC O-01
func TestCollectorCredentialsAreSecrets(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "", nil)
	holds := holdsKey(r.floor.settings)
	for variable, want := range map[string]bool{
		"OTEL_EXPORTER_OTLP_HEADERS=x-team=hidden":                              true,
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=x-team=hidden":                       true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://ann:hidden@collector.example:4318": true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://collector.example:4318":            false,
		"OTEL_SERVICE_NAME=belay":                                               false,
	} {
		if holds(variable) != want {
			t.Errorf("%s: %v, want %v", variable, !want, want)
		}
	}
}
